"""Strange requests are refused in the form of the site, and named: NUL, and parameters, too."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from runs_app.models import Run, Submission
from tests import factories as make
from tests.unit.kbench_web.world import routes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

MANY = "&".join(f"a{number}=1" for number in range(1200))
PAGES = ("/", "/leaderboard/", "/nowhere/", "/admin/", "/sign-in/", "/static/nothing.css")
API = ("/api/v1/tasks", "/api/v1/nowhere", "/api/")


@pytest.fixture
def logged() -> Iterator[StringIO]:
    """What the site's own handler writes."""
    stream = StringIO()
    (handler,) = [each for each in logging.getLogger().handlers if each.get_name() == "console"]
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(stream)
    yield stream
    handler.setStream(before)


@pytest.mark.parametrize("why", ["parameters", "host"])
def test_a_strange_address_is_refused(why: str, logged: StringIO) -> None:
    client = Client(raise_request_exception=False)
    for number, path in enumerate((*PAGES, *API), 1):
        if why == "parameters":
            answer = client.get(f"{path}?{MANY}")
        else:
            answer = client.get(path, headers={"host": "evil.example"})
        assert len(logged.getvalue().splitlines()) <= number
        if path.startswith("/static/"):
            assert answer.status_code in (400, 404)
        elif path.startswith("/api/"):
            assert answer.status_code == 400
            assert "can't be read" in answer.json()["reason"]
        else:
            assert answer.status_code == 400
            assert "read your request" in answer.content.decode()


def test_a_strange_form_is_refused(logged: StringIO) -> None:
    client = Client(raise_request_exception=False)
    form = "application/x-www-form-urlencoded"
    for path in ("/sign-in/", "/nowhere/"):
        for body in (MANY, "a=" + "x" * (9 << 20)):
            assert client.post(path, body, content_type=form).status_code in (400, 404)
    assert "Traceback" not in logged.getvalue()
    assert len(logged.getvalue().splitlines()) <= 4


ADDRESSES = [
    *(f"/runs/?{name}=%00" for name in ("task", "device", "strategy", "status")),
    *(f"/api/v1/runs?{name}=a%00" for name in ("task", "device", "strategy", "status")),
    *(f"/api/v1/tasks/a%00{rest}" for rest in ("", "/versions", "/soundness", "/judgements")),
    "/api/v1/tasks/a%00/versions/1",
    "/leaderboard/?task=%00",
    "/tasks/?q=%00",
    "/submit/?task=%00",
    "/queue/?%00=1",
    "/sign-in/?next=/%00",
]


@pytest.mark.parametrize("signed_in", [False, True])
def test_an_address_with_nul_is_a_400(signed_in: bool) -> None:
    client = Client()
    if signed_in:
        client.force_login(make.make_admin())
    for address in ADDRESSES:
        answer = client.get(address)
        if address.startswith("/submit/") and not signed_in:
            assert answer.status_code in (302, 400)
        elif address.startswith("/api/"):
            assert answer.status_code == 400
            assert "NUL" in answer.json()["reason"]
            assert answer.json()["field"]
        else:
            assert answer.status_code == 400
            assert "a NUL character" in " ".join(answer.content.decode().split())
            assert ("Sign in" in answer.content.decode()) is not signed_in
    assert client.get(f"/api/v1/submissions/{uuid.uuid4()}%00").status_code == 400
    cookie = f'{settings.SESSION_COOKIE_NAME}="\\000abcdefghij"'
    answer = Client(HTTP_COOKIE=cookie).get("/account/")
    assert (answer.status_code, answer["Location"][:9]) == (302, "/sign-in/")


def test_a_form_with_nul_is_a_400_and_stores_nothing() -> None:
    evaluation = make.make_finished_evaluation()
    client = Client()
    client.force_login(evaluation.submission.author)
    address = f"/submissions/{evaluation.submission_id}/rerun/"
    kind, plain = "application/x-www-form-urlencoded", "mode=quick&device=cpu%00"
    for answer in (
        client.post(address, plain, content_type=kind),
        client.post(address, {"mode": "quick", "device": "cpu\0"}),
    ):
        assert answer.status_code == 400
        assert "<code>device</code>" in answer.content.decode()
    assert evaluation.submission.evaluations.count() == 1


def test_an_upload_over_the_limit_stays_a_413() -> None:
    token = make.make_token(make.make_user())
    answer = Client().post(
        "/api/v1/submissions",
        b"\0" * (9 << 20),
        content_type="application/x-www-form-urlencoded",
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 413


def test_a_body_with_nul_or_of_another_type_names_the_field() -> None:
    make.make_task_version()
    whole: dict[str, dict[str, Any]] = {
        "submissions": {"task": "scale", "source": make.SOURCE, "language": "cpp"},
        "runs": {"task": "scale", "strategy": "autotune"},
    }
    headers = {"Authorization": f"Bearer {make.make_token(make.make_user())}"}
    for name, changes, field in BODIES:
        body, kind = json.dumps(whole[name] | changes), "application/json"
        answer = Client().post(f"/api/v1/{name}", body, content_type=kind, headers=headers)
        assert answer.status_code == 422, answer.content
        assert answer.json()["field"] == field
        assert (" in line 1, column " in answer.json()["reason"]) is ("\\u" in json.dumps(changes))
    assert not Submission.objects.exists()
    assert not Run.objects.exists()


BODIES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("submissions", {"private": 0}, "private"),
    ("runs", {"private": 1}, "private"),
    ("runs", {"seed": "7"}, "seed"),
    ("runs", {"seed": True}, "seed"),
    ("runs", {"budget": {"usd": "2"}}, "budget.usd"),
    ("runs", {"budget": {"evaluations": True}}, "budget.evaluations"),
    ("runs", {"temperatures": ["0.5"]}, "temperatures.0"),
    ("submissions", {"task": "scale\0"}, "task"),
    ("submissions", {"device": "\0"}, "device"),
    ("submissions", {"source": "\0"}, "source"),
    ("submissions", {"model": "\ud800"}, "model"),
    ("runs", {"task": "scale\0"}, "task"),
    ("runs", {"device": "cpu\0"}, "device"),
    ("runs", {"parameters": {"rounds": ["\0"]}}, "parameters"),
    ("runs", {"parameters": {"\0": 1}}, "parameters"),
    ("runs", {"models": ["\0"]}, "models"),
    ("runs", {"name": "\0"}, "name"),
)


OURS = ("tasks_app.", "runs_app.", "leaderboard_app.", "kbench_web.")
OF_ALLAUTH = "kbench_web.accounts."


def own_addresses() -> Iterator[str]:
    """Of the site's own pages, those whose address needs no argument."""
    for route in routes():
        module = route.callback.__module__
        is_ours = module.startswith(OURS) and not module.startswith(OF_ALLAUTH)
        if is_ours and not route.parameters:
            yield route.path


def test_every_page_refuses_what_it_does_not_know() -> None:
    client = Client()
    client.force_login(make.make_admin())
    statuses = {address: client.get(address, {"devise": "cpu"}) for address in own_addresses()}
    assert len(statuses) > 30
    assert {address: answer.status_code for address, answer in statuses.items()} == dict.fromkeys(
        statuses, 400
    )
