"""NUL in an address, a form, a cookie or a body: refused, with the field's name, everywhere."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from runs_app.models import Run, Submission
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

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
        assert ("NUL" in answer.json()["reason"]) is ("\\u" in json.dumps(changes))
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
