"""The job that checks a task: what it reports, and how it ends where the task's code fails."""

from __future__ import annotations

import errno
import time
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.daemon import jobs
from gpu_runner.daemon.events import Outbox
from gpu_runner.daemon.jobs import JOBS, CheckJob, JobContext, JobTimeout
from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.data import codec
from gpu_runner.data.check import CheckRequest
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.formats import find_task
from gpu_runner.data.order import Order
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, Verdict
from gpu_runner.supervisor.device.lock import exclusive
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import JailError
from gpu_runner.supervisor.host.killed import KilledFromOutside
from gpu_runner.supervisor.oracle.client import OracleError
from tests.unit.gpu_runner.daemon.conftest import StartDaemon
from tests.unit.gpu_runner.daemon.running import RunningDaemon

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
RAISES = "raise RuntimeError('no such size as 7')"
FORWARD = "def forward_fn(x):\n    return x\n"
DIES = "import os; os.write(2, b'no such library'); os._exit(3)"


def broken_task(statement: str = RAISES) -> Task:
    return Task(
        name="broken",
        title="Broken",
        format=TaskFormat.KBENCH,
        abi=Abi.TORCH,
        workloads=(Workload(name="n8", parameters={"n": 8}),),
        files={"reference.py": f"def make_inputs(n):\n    {statement}\n\n{FORWARD}"},
    )


def request_for(task: Task) -> dict[str, Any]:
    encoded: dict[str, Any] = codec.encode(CheckRequest(check_id="c1", task=task, device="cpu"))
    return encoded


def order(request: dict[str, Any]) -> Order:
    return Order(kind=CheckRequest.KIND, job_id="c1", attempt=1, timeout_s=120, request=request)


def enqueue(daemon: RunningDaemon, task: Task) -> None:
    daemon.site.put(order(request_for(task)))


class Sent:
    """Stands in for the way to the site."""

    is_endless, unread, is_brief = True, 0, True

    def __init__(self) -> None:
        self.events: list[Event] = []

    def send(self, event: Event) -> None:
        self.events.append(event)


def run(tmp_path: Path, check_task: jobs.Make) -> tuple[list[Event], list[Verdict]]:
    """Events of the job, and with which verdicts the device was looked at afterwards."""
    sent, looks = Sent(), list[Verdict]()

    def after(config: SupervisorConfig, verdict: Verdict) -> str:
        looks.append(verdict)
        return ""

    context = JobContext(
        runner="host-1",
        supervisor=SupervisorConfig(cache_folder=tmp_path),
        state=SlotState(),
        source=sent,  # type: ignore[arg-type]
        outbox=Outbox(tmp_path / "outbox"),
        after=after,
        alive_s=0.05,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(JOBS, CheckRequest.KIND, CheckJob(check_task))
        jobs.do(order(request_for(broken_task())), context)
    return sent.events, looks


@needs_jail
def test_a_built_in_task_is_checked_under_the_lock_of_the_device(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    task = find_task("vector_add")
    config = SupervisorConfig(cache_folder=daemon.config.cache_folder)
    with exclusive(config):
        enqueue(daemon, task)
        assert daemon.wait_for(EventKind.STAGE, "c1").payload["detail"] == "waits for cpu"
        time.sleep(1.0)  # some heartbeats
        assert daemon.wait_for_state("ready")["current"] == ["check-c1-1"]
        assert len(daemon.events("c1")) == 2
    report = daemon.wait_for(EventKind.FINISHED, "c1", timeout_s=120).payload["report"]
    assert (report["task"], report["digest"]) == ("vector_add", task.digest())
    assert (report["device"], report["passed"]) == ("cpu", True)
    assert report["mutants"]
    assert report["filters"]
    events = daemon.events("c1")
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    stages = [event.payload["detail"] for event in events if event.kind is EventKind.STAGE]
    assert "forward: filters" in stages
    assert any("wrong kernels decided" in stage for stage in stages)


@needs_jail
@pytest.mark.parametrize(
    ("statement", "words"),
    [(RAISES, "no such size as 7"), (DIES, "died (end of file):\nno such library")],
)
def test_a_task_whose_own_code_fails_ends_with_its_words(
    start_daemon: StartDaemon, statement: str, words: str
) -> None:
    daemon = start_daemon()
    enqueue(daemon, broken_task(statement))
    payload = daemon.wait_for(EventKind.FINISHED, "c1", timeout_s=120).payload
    assert "report" not in payload
    assert words in payload["reason"]


@pytest.mark.parametrize(
    ("error", "end", "words"),
    [
        (OracleError("it ran out of memory:\nkilled"), "finished", "ran out of memory:\nkilled"),
        (KeyError(), "finished", "the runner failed: KeyError"),
        (JobTimeout("3600 s"), "finished", "last stage: forward n8"),
        # what this host is the cause of
        (KilledFromOutside("the oracle was killed"), "lost", "the oracle was killed"),
        (JailError("no jail on this host"), "lost", "no jail on this host"),
        (OSError(errno.ENOSPC, "full"), "lost", "out of disk space"),
    ],
)
def test_what_fails_ends_with_a_reason(
    tmp_path: Path, error: Exception, end: str, words: str
) -> None:
    def fail(*arguments: Any) -> dict[str, Any]:
        arguments[2]("forward n8")
        raise error

    events, looks = run(tmp_path, fail)
    assert [event.kind.value for event in events] == ["started", "stage", end]
    assert words in events[-1].payload["reason"]
    assert looks == [Verdict.RUNTIME_ERROR]


def test_numbers_that_json_does_not_have_travel_as_words(tmp_path: Path) -> None:
    def slow(*_: Any) -> dict[str, Any]:
        time.sleep(0.2)
        return {"honest": [{"scaled": float("inf")}], "passed": False}

    events, looks = run(tmp_path, slow)
    assert EventKind.ALIVE in {event.kind for event in events}
    assert events[-1].payload == {"report": {"honest": [{"scaled": "inf"}], "passed": False}}
    assert looks == [Verdict.CORRECT]
    events, _ = run(tmp_path, lambda *_: {"mutants": ["x" * 2**22]})
    assert "the limit is 4194304" in events[-1].payload["reason"]
    assert "report" not in events[-1].payload
