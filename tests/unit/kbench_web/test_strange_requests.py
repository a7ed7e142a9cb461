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
            assert "read that request" in answer.content.decode()


def test_a_strange_form_is_refused(logged: StringIO) -> None:
    client = Client(raise_request_exception=False)
    form = "application/x-www-form-urlencoded"
    for path in ("/sign-in/", "/nowhere/"):
        for body in (MANY, "a=" + "x" * (9 << 20)):
            assert client.post(path, body, content_type=form).status_code in (400, 404)
    assert "Traceback" not in logged.getvalue()
    assert len(logged.getvalue().splitlines()) <= 4


def test_a_fault_of_ours_still_has_its_traceback(logged: StringIO) -> None:
    try:
        raise RuntimeError("ours")
    except RuntimeError:
        logging.getLogger("runs_app").exception("it broke")
    assert "RuntimeError: ours" in logged.getvalue()
