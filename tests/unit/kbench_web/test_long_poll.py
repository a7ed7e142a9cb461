"""`?wait=N`: the answer comes with the event, no earlier, no later, and to nobody else."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator

from gpu_runner.data.event import EventKind
from kbench_web.asgi import application
from tests import factories as make

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("jobs")]

BUILD = {"stage": "build", "state": "running", "elapsed_s": 0.1, "detail": ""}


def ask(path: str, token: str = "") -> ApplicationCommunicator:
    """A request that has been sent."""
    path, _, query = path.partition("?")
    headers = [(b"host", b"localhost"), (b"accept-encoding", b"gzip")]
    headers += [(b"authorization", f"Bearer {token}".encode())] if token else []
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"/api/v1/{path}",
        "raw_path": b"",
        "query_string": query.encode(),
        "headers": headers,
        "client": ["127.0.0.1", 1],
        "server": ["127.0.0.1", 80],
        "scheme": "http",
        "http_version": "1.1",
    }
    return ApplicationCommunicator(application, scope)


async def answer_of(asked: ApplicationCommunicator, timeout_s: float = 60) -> tuple[int, Any]:
    """Status and document of the answer."""
    start = await asked.receive_output(timeout_s)
    body = await asked.receive_output(timeout_s)
    await asked.wait()
    packed = (b"content-encoding", b"gzip") in [(k.lower(), v) for k, v in start["headers"]]
    text = gzip.decompress(body["body"]) if packed else body["body"]
    return start["status"], json.loads(text)


async def begin(path: str, token: str = "") -> ApplicationCommunicator:
    """Send a request, which does not answer at once."""
    asked = ask(path, token)
    await asked.send_input({"type": "http.request", "body": b"", "more_body": False})
    assert await asked.receive_nothing(timeout=0.7, interval=0.05)
    return asked


@pytest.mark.parametrize("end", ["", "/status"])
async def test_it_answers_with_the_verdict(end: str) -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    asked = await begin(f"submissions/{evaluation.submission_id}{end}?wait=30")
    await sync_to_async(make.start)(evaluation)
    assert await asked.receive_nothing(timeout=0.3, interval=0.05)
    await sync_to_async(make.finish)(evaluation)
    status, document = await answer_of(asked)
    assert status == 200
    [state] = document.get("evaluations", [document])
    assert (state["status"], state["verdict"]) == ("FINISHED", "CORRECT")


async def test_with_since_it_answers_with_the_next_event() -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    path = f"submissions/{evaluation.submission_id}/status?wait=30&since="
    asked = await begin(f"{path}1")
    await sync_to_async(make.start)(evaluation)
    assert (await answer_of(asked))[1]["events"] == 2
    await sync_to_async(make.send)(evaluation, EventKind.STAGE, BUILD, seq=2)
    behind = ask(f"{path}2")
    await behind.send_input({"type": "http.request", "body": b"", "more_body": False})
    assert (await answer_of(behind))[1]["stage"] == "build"


async def test_it_answers_at_the_end_of_the_time() -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    began = time.monotonic()
    asked = await begin(f"submissions/{evaluation.submission_id}/status?wait=1")
    status, document = await answer_of(asked)
    assert (status, document["over"]) == (200, False)
    assert 0.9 < time.monotonic() - began < 30


async def test_a_run_is_waited_for() -> None:
    run = await sync_to_async(make.make_run)()
    newest = run.events_stored
    asked = await begin(f"runs/{run.pk}?wait=1&since={newest}")
    status, document = await answer_of(asked)
    assert (status, document["status"]) == (200, "RUNNING")


@pytest.mark.parametrize("path", ["submissions/{}/status?wait=30", "submissions/{}?wait=30"])
async def test_a_stranger_does_not_learn_that_something_happens(path: str) -> None:
    user = await sync_to_async(make.make_user)()
    evaluation = await sync_to_async(make.make_evaluation)(user=user, private=True)
    token = await sync_to_async(make.make_token)(user)
    asked = ask(path.format(evaluation.submission_id))
    await asked.send_input({"type": "http.request", "body": b"", "more_body": False})
    assert (await answer_of(asked))[0] == 404
    owner = await begin(path.format(evaluation.submission_id), token)
    await sync_to_async(make.start)(evaluation)
    await sync_to_async(make.finish)(evaluation)
    assert (await answer_of(owner))[0] == 200


@pytest.mark.parametrize("query", ["wait=61", "wait=x", "wait=30&since=x", "wait=30&other=1"])
async def test_a_wrong_parameter_is_refused_at_once(query: str) -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    asked = ask(f"submissions/{evaluation.submission_id}/status?{query}")
    await asked.send_input({"type": "http.request", "body": b"", "more_body": False})
    assert (await answer_of(asked))[0] == 422


async def test_waiting_counts_as_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def count(key: str, more: int = 1) -> int:
        counted.append(more)
        return sum(counted)

    monkeypatch.setattr("kbench_web.api_access.count", count)
    evaluation = await sync_to_async(make.make_evaluation)()
    asked = await begin(f"submissions/{evaluation.submission_id}?wait=30")
    await sync_to_async(make.start)(evaluation)
    await sync_to_async(make.finish)(evaluation)
    await answer_of(asked)
    assert sum(counted) == 1
    assert len(counted) > 2


async def test_who_goes_away_is_waited_for_by_nobody() -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    asked = await begin(f"submissions/{evaluation.submission_id}/status?wait=60")
    await asked.send_input({"type": "http.disconnect"})
    await asyncio.wait_for(asked.wait(), 60)
    assert await asked.receive_nothing(timeout=0.1)


async def test_thirty_wait_without_thirty_threads() -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    before = threading.active_count()
    asked = [ask(f"submissions/{evaluation.submission_id}/status?wait=60") for _ in range(30)]
    for each in asked:
        await each.send_input({"type": "http.request", "body": b"", "more_body": False})
    deadline = time.monotonic() + 30  # each is asked twice before it waits
    await asyncio.sleep(1)
    while threading.active_count() - before >= 10 and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    assert threading.active_count() - before < 10
    assert await asked[-1].receive_nothing(timeout=0.2)
    await sync_to_async(make.start)(evaluation)
    await sync_to_async(make.finish)(evaluation)
    for each in asked:
        assert (await answer_of(each))[1]["over"]
