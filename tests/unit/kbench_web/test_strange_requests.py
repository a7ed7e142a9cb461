"""A request that Django refuses gets an answer in the site's form, and one line in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import StringIO

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db

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


@pytest.mark.parametrize("path", [*PAGES, *API])
@pytest.mark.parametrize("why", ["parameters", "host"])
def test_a_strange_address_is_refused(path: str, why: str, logged: StringIO) -> None:
    client = Client(raise_request_exception=False)
    if why == "parameters":
        answer = client.get(f"{path}?{MANY}")
    else:
        answer = client.get(path, headers={"host": "evil.example"})
    lines = logged.getvalue().splitlines()
    assert len(lines) <= 1, lines
    if path.startswith("/static/"):
        assert answer.status_code in (400, 404)
        return
    assert answer.status_code == 400
    if path.startswith("/api/"):
        assert answer["Content-Type"].startswith("application/json")
        assert "can't be read" in answer.json()["reason"]
    else:
        assert "We can't read that request" in answer.content.decode()


@pytest.mark.parametrize("path", ["/sign-in/", "/nowhere/"])
def test_a_strange_form_is_refused(path: str, logged: StringIO) -> None:
    client = Client(raise_request_exception=False)
    form = "application/x-www-form-urlencoded"
    for body in (MANY, "a=" + "x" * (9 << 20)):
        answer = client.post(path, body, content_type=form)
        assert answer.status_code in (400, 404)
    assert "Traceback" not in logged.getvalue()
    assert len(logged.getvalue().splitlines()) <= 2


def test_a_fault_of_ours_still_has_its_traceback(logged: StringIO) -> None:
    try:
        raise RuntimeError("ours")
    except RuntimeError:
        logging.getLogger("runs_app").exception("it broke")
    assert "RuntimeError: ours" in logged.getvalue()
