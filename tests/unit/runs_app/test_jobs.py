"""Jobs that the site's workers refuse, enqueued as somebody with access to Redis could."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import redis
from rq import Callback, Queue, Retry, Webhook
from rq.job import Job
from rq.serializers import JSONSerializer

from runs_app import jobs
from runs_app.core.messaging.queues import ADVANCE_FUNCTION, CALL_FUNCTION

RQ_CALLBACK = "tests.unit.runs_app.test_jobs.called_back"
connection: redis.Redis
"""Where a callback leaves its mark."""


def called_back(*_: Any) -> None:
    connection.rpush("called back", 1)


@pytest.fixture
def queue(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Queue:
    """The queue of the workers, whose functions note what they are called with, or fail."""
    global connection  # noqa: PLW0603 - RQ finds a callback by its name alone
    connection = redis.Redis.from_url(redis_url)

    def fail(about: str) -> None:
        connection.rpush("failed", about)
        raise RuntimeError(about)

    monkeypatch.setitem(
        jobs.ALLOWED, ADVANCE_FUNCTION, lambda about: connection.rpush("ran", about)
    )
    monkeypatch.setitem(jobs.ALLOWED, CALL_FUNCTION, fail)
    return Queue("runs", connection=connection, serializer=JSONSerializer)


@pytest.fixture
def heard() -> Iterator[tuple[str, list[str]]]:
    """Address of a server on this host, and the requests that it got."""
    requests: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.requestline)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET

    with HTTPServer(("127.0.0.1", 0), Listener) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", requests
        server.shutdown()
        thread.join()


def work(queue: Queue) -> None:
    """Do what waits, with a queue as a pool hands it over: of RQ's own classes."""
    loose = Queue(queue.name, connection=queue.connection)
    jobs.SiteWorker([loose], connection=queue.connection).work(burst=True)


def words(job: Job) -> str:
    """Why a job failed."""
    result = job.latest_result()
    assert job.is_failed
    assert result is not None
    return str(result.exc_string)


def ran() -> list[bytes]:
    return connection.lrange("ran", 0, -1)


def test_a_plain_call_is_made(queue: Queue) -> None:
    queue.enqueue(ADVANCE_FUNCTION, "7")
    work(queue)
    assert ran() == [b"7"]


@pytest.mark.parametrize("function", [ADVANCE_FUNCTION, CALL_FUNCTION, "os.getcwd", "no.such.name"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_webhook_is_called(
    queue: Queue, heard: tuple[str, list[str]], function: str, method: Any
) -> None:
    """Neither of a job that is refused nor of one that fails."""
    url, requests = heard
    hooks = [Webhook(url, status, method=method) for status in ("finished", "failed")]
    job = queue.enqueue(function, "7", webhooks=hooks)
    work(queue)
    assert "RefusedJob" in words(job)
    assert (ran(), requests) == ([], [])


@pytest.mark.parametrize("when", ["on_success", "on_failure", "on_stopped"])
def test_a_job_with_a_callback_is_refused(queue: Queue, when: str) -> None:
    job = queue.enqueue(ADVANCE_FUNCTION, "7", **{when: Callback(RQ_CALLBACK)})
    work(queue)
    assert "can't have callbacks" in words(job)
    assert (ran(), connection.llen("called back")) == ([], 0)


def test_a_method_of_an_object_is_refused(queue: Queue) -> None:
    job = queue.enqueue(ADVANCE_FUNCTION, "7")
    data = json.dumps([ADVANCE_FUNCTION, {"an": "object"}, ["7"], {}])
    connection.hset(job.key, "data", data)
    work(queue)
    assert "is not a function" in words(job)
    assert ran() == []


def test_a_job_that_fails_is_not_tried_again(queue: Queue) -> None:
    job = queue.enqueue(CALL_FUNCTION, "7", retry=Retry(max=3))
    work(queue)
    assert "RuntimeError" in words(job)
    assert connection.llen("failed") == 1


def test_a_job_that_was_given_up_is_only_put_aside(queue: Queue) -> None:
    """RQ looks for such jobs whenever a worker starts, and would call their callbacks."""
    job = queue.enqueue(ADVANCE_FUNCTION, "7", on_failure=Callback(RQ_CALLBACK))
    connection.lrem(queue.key, 0, job.id)
    connection.zadd(queue.started_job_registry.key, {f"{job.id}:execution": 1})
    work(queue)
    assert job.is_failed
    assert (ran(), connection.llen("called back")) == ([], 0)
