"""Jobs that a worker must refuse, enqueued as somebody with access to Redis could."""

from __future__ import annotations

import json
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from rq import Callback, Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from tests.unit.gpu_runner.daemon.conftest import StartDaemon
from tests.unit.gpu_runner.daemon.running import RunningDaemon, make_request

EVALUATE = "gpu_runner.daemon.jobs.evaluate"


def wait_until_failed(daemon: RunningDaemon, job: Job) -> str:
    deadline = time.monotonic() + 60
    while not job.is_failed:
        assert time.monotonic() < deadline, job.get_status()
        time.sleep(0.05)
    result = job.latest_result()
    assert result is not None
    return str(result.exc_string)


@pytest.mark.parametrize("function", ["os.system", "pathlib.Path.touch", "no.such.function"])
def test_any_other_function_is_refused_and_not_run(
    start_daemon: StartDaemon, tmp_path: Path, function: str
) -> None:
    daemon = start_daemon()
    target = tmp_path / "touched"
    argument = f"touch {target}" if function == "os.system" else str(target)
    job = daemon.queue.enqueue(function, argument)
    assert "is not a function that this worker runs" in wait_until_failed(daemon, job)
    assert not target.exists()
    daemon.enqueue(make_request())
    daemon.wait_for(EventKind.FINISHED)


def test_callbacks_are_refused(start_daemon: StartDaemon, tmp_path: Path) -> None:
    daemon = start_daemon()
    request = codec.encode(make_request())
    job = daemon.queue.enqueue(EVALUATE, request, on_success=Callback("os.getcwd"))
    assert "callbacks" in wait_until_failed(daemon, job)
    assert daemon.events() == []


def test_a_pickled_job_is_never_unpickled(start_daemon: StartDaemon, tmp_path: Path) -> None:
    daemon = start_daemon()
    target = tmp_path / "touched"

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (target,)

    pickled = Queue("device-cpu", connection=daemon.connection)
    pickled.enqueue(EVALUATE, Bomb())
    daemon.enqueue(make_request())
    daemon.wait_for(EventKind.FINISHED)
    assert not target.exists()


@pytest.mark.parametrize(
    "request_", ["text", None, {}, {"evaluation_id": 7}, {"evaluation_id": "x", "attempt": 0}]
)
def test_a_request_without_identity_is_refused(start_daemon: StartDaemon, request_: object) -> None:
    daemon = start_daemon()
    job = daemon.queue.enqueue(EVALUATE, request_)
    assert "refused" in wait_until_failed(daemon, job)


def test_a_request_that_cannot_be_read_is_lost_with_the_field(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    request = {**codec.encode(make_request()), "colour": "blue"}
    daemon.queue.enqueue(EVALUATE, request)
    assert "colour" in daemon.wait_for(EventKind.LOST).payload["reason"]


def test_jobs_travel_as_json(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(fault="no jail, so that the job stays where it is")
    job = daemon.enqueue(make_request())
    stored = zlib.decompress(daemon.connection.hget(job.key, "data"))
    assert json.loads(stored)[0] == EVALUATE
    assert daemon.queue.serializer is JSONSerializer
