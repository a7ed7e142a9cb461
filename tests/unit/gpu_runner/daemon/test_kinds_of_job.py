"""A kind of job that only this test knows: its class, and a line in `JOBS`, is all it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from gpu_runner.daemon.jobs import JOBS, Make, TaskJob
from gpu_runner.data.event import EventKind
from gpu_runner.data.order import Order
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.soundness.soundness import Progress
from tests.unit.gpu_runner.daemon.conftest import StartDaemon


@dataclass(frozen=True, kw_only=True)
class DoubleRequest:
    """Asks what twice a number is."""

    KIND: ClassVar[str] = "double"

    number: int


def double(request: DoubleRequest, config: SupervisorConfig, tell: Progress) -> dict[str, int]:
    tell(f"doubles it on {config.device}")
    return {"doubled": 2 * request.number}


@dataclass(frozen=True)
class DoubleJob(TaskJob):
    """Doubles a number."""

    request = DoubleRequest
    make: Make = double


ORDER = Order(kind="double", job_id="d1", attempt=1, timeout_s=60, request={"number": 21})


def test_a_daemon_does_the_jobs_of_a_new_kind(
    start_daemon: StartDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(JOBS, DoubleRequest.KIND, DoubleJob())
    daemon = start_daemon()
    daemon.site.put(ORDER)
    daemon.wait_for(EventKind.FINISHED, "d1")
    started, stage, finished = daemon.events("d1")
    assert {event.job for event in (started, stage, finished)} == {"double"}
    assert (started.kind, stage.payload["detail"]) == (EventKind.STARTED, "doubles it on cpu")
    assert finished.payload == {"report": {"doubled": 42}}


def test_a_runner_that_does_not_know_a_kind_says_so(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    daemon.site.put(ORDER)
    reason = daemon.wait_for(EventKind.LOST, "d1").payload["reason"]
    assert "this runner doesn't know jobs of the kind 'double'" in reason
