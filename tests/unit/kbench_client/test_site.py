"""What the client makes of a network and of a site that are not as they should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from kbench_client.commands.tasks import folder_of
from kbench_client.config import Account, address
from kbench_client.exits import Exit, Stop
from kbench_client.site import Site

RUNNING = {"status": "RUNNING", "over": False}


def site(answer: Callable[[httpx2.Request], httpx2.Response]) -> Site:
    def told(request: httpx2.Request) -> httpx2.Response:
        response = answer(request)
        response.headers.setdefault("Kbench-Version", "")
        return response

    account = Account(url="http://kbench.example/sub", token="kb_secret")
    return Site(account, transport=httpx2.MockTransport(told))


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbench_client.site.time.sleep", lambda _: None)


def test_a_site_that_is_not_there_is_named() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    with pytest.raises(Stop, match=r"http://kbench.example/sub cannot be reached") as stop:
        site(refuse).tasks()
    assert stop.value.status is Exit.UNREACHABLE


def test_what_is_sent_again_has_the_same_key() -> None:
    keys: list[str] = []

    def break_off(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) < 3:
            raise httpx2.ReadError("broken off")
        return httpx2.Response(201, json={"id": "1"})

    assert site(break_off).submit({"task": "x"}) == {"id": "1"}
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_every_answer_has_its_end() -> None:
    for status, content, ended in (
        (500, b"<h1>sorry</h1>", Exit.UNREACHABLE),
        (502, b"", Exit.UNREACHABLE),
        (302, b"", Exit.UNREACHABLE),
        (200, b"<html>", Exit.UNREACHABLE),
        (404, b'{"field": "", "reason": "no"}', Exit.MISUSE),
        (429, b'{"field": "", "reason": "slowly"}', Exit.LATER),
        (401, b'{"field": "Authorization", "reason": "no"}', Exit.NO_TOKEN),
        (403, b'{"field": "", "reason": "no"}', Exit.NO_TOKEN),
    ):
        answer = httpx2.Response(status, content=content)
        with pytest.raises(Stop) as stop:
            site(lambda request, answer=answer: answer).about()
        assert stop.value.status is ended
        assert "kb_secret" not in str(stop.value)
    several = {"field": "task", "reason": "no task", "also": [{"field": "mode", "reason": "none"}]}
    with pytest.raises(Stop, match=r"^task: no task\nmode: none$") as stop:
        site(lambda request: httpx2.Response(422, json=several)).about()
    assert stop.value.also == [("mode", "none")]
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, json={"object": "list"}))
    elsewhere = Site(Account(url="http://models.example"), transport=transport)
    with pytest.raises(Stop, match="isn't a kbench site"):
        elsewhere.tasks()
    refusal = {"field": "", "reason": "more than 600 requests a minute"}
    with pytest.raises(Stop, match="600 requests"):  # a watch hears nothing
        list(site(lambda request: httpx2.Response(429, json=refusal)).watch_run("1", 0))


def test_what_cannot_be_sent_is_refused() -> None:
    said = site(lambda request: httpx2.Response(200, json={}))
    values: tuple[tuple[Any, str], ...] = (
        (float("nan"), "not finite"), ("\udcff", "not text"), ([1e999], "finite")
    )  # fmt: skip
    for value, words in values:
        with pytest.raises(Stop, match=words) as stop:
            said.submit({"task": value})
        assert stop.value.status is Exit.MISUSE
    with pytest.raises(Stop, match="not text"):
        said.tasks(q="\udcff")


def test_a_watch_asks_when_the_site_says_and_tells_only_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paused: list[float] = []
    monkeypatch.setattr("kbench_client.site.time.sleep", paused.append)
    asked: list[str] = []
    answers = iter([
        httpx2.Response(200, json=RUNNING, headers={"ETag": '"1"', "Retry-After": "2"}),
        httpx2.Response(304, headers={"Retry-After": "3"}),
        httpx2.Response(429, json={"field": "", "reason": ""}, headers={"Retry-After": "40"}),
        httpx2.Response(200, json={**RUNNING, "over": True}, headers={"ETag": '"2"'}),
    ])  # fmt: skip

    def told(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.headers.get("If-None-Match", ""))
        return next(answers)

    states = list(site(told).watch_submission("1", 100))
    assert [state["over"] for state in states] == [False, True]
    assert paused == [2, 3, 40]
    assert asked == ["", '"1"', '"1"', '"1"']


def test_all_pages_are_read() -> None:
    def pages(request: httpx2.Request) -> httpx2.Response:
        if "after" in str(request.url):
            return httpx2.Response(200, json=[{"name": "b"}])
        link = '</api/v1/tasks?after=a>; rel="next"'
        return httpx2.Response(200, json=[{"name": "a"}], headers={"Link": link})

    assert [task["name"] for task in site(pages).tasks()] == ["a", "b"]


def test_an_id_stays_one_part_of_the_path() -> None:
    seen: list[Any] = []

    def note(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.url.raw_path.decode())
        return httpx2.Response(200, json={})

    site(note).submission("../../admin?x=1#y")
    assert seen == ["/sub/api/v1/submissions/%2E%2E%2F%2E%2E%2Fadmin%3Fx%3D1%23y"]


def test_a_site_cannot_write_outside_the_folder() -> None:
    task = {"name": "t", "title": "T", "abi": "c", "dtype": "float32", "directions": ["forward"]}
    for name in ("../x", "/etc/passwd", "a/../../x", "c:\\x"):
        with pytest.raises(Stop, match="outside the folder"):
            folder_of({**task, "document": {"workloads": [], "files": {name: "x"}}})


def test_what_is_no_address_is_refused() -> None:
    for text in ("ftp://x", "http://", "http://user@host", "file:///etc/passwd", "http://[::1"):
        with pytest.raises(Stop):
            address(text)
    assert address("kbench.example:8000/") == "http://kbench.example:8000"
    assert address("https://kbench.example/lab/") == "https://kbench.example/lab"
