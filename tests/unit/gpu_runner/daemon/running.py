"""Requests, stand-ins for the supervisor, and a daemon in a process of its own."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import multiprocessing
import os
import signal
import time
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import redis
from rq import Queue
from rq.serializers import JSONSerializer

from gpu_runner.daemon.config import DaemonConfig
from gpu_runner.daemon.jobs import Evaluate, Report
from gpu_runner.daemon.work import work
from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.event import EVENT_STREAM, Event, EventKind
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Language, Mode, Stage, Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig

FORK = multiprocessing.get_context("fork")
FORKS = 3
FIRST_WORD_S = {DeviceKind.CPU: 8.0, DeviceKind.CUDA: 30.0}  # a GPU's driver takes its time


def make_request(evaluation_id: str = "e1", source: str = "void f() {}") -> EvaluationRequest:
    """A request for a task with one workload."""
    task = Task(
        name="softmax",
        title="Softmax",
        format=TaskFormat.KBENCH,
        abi=Abi.C,
        signature="void softmax(float* out, const float* input, int N)",
        workloads=(Workload(name="n1", parameters={"N": 1}),),
        files={"reference.py": ""},
    )
    return EvaluationRequest(
        evaluation_id=evaluation_id,
        task=task,
        solution=Solution(source=source, language=Language.CPP),
        mode=Mode.TEST,
        device="cpu",
    )


def make_result(request: EvaluationRequest, verdict: Verdict) -> EvaluationResult:
    """A result without a latency."""
    return EvaluationResult(
        evaluation_id=request.evaluation_id,
        attempt=request.attempt,
        verdict=verdict,
        reason="as the test has it",
        mode=request.mode,
        device=request.device,
        task=request.task.name,
        task_digest=request.task.digest(),
        solution_digest=request.solution.digest(),
    )


def supervise(
    request: EvaluationRequest, config: SupervisorConfig, report: Report, oracles: object = None
) -> EvaluationResult:
    """Stand-in for the supervisor: the source says how it behaves.

    "sleep S": work for S seconds; "leak FILE": leave a process that appends to FILE every 50 ms,
    then wait; "raise": fail.
    """
    del config, oracles
    word, _, rest = request.solution.source.partition(" ")
    report(Stage.BUILD, "running", word)
    if word == "sleep":
        time.sleep(float(rest))
    elif word == "leak":
        if os.fork() == 0:
            os.setsid()
            while True:
                with Path(rest).open("a") as file:
                    file.write(".")
                time.sleep(0.05)
        time.sleep(60)
    elif word == "raise":
        raise RuntimeError("the oracle is gone")
    report(Stage.BUILD, "done", "")
    return make_result(request, Verdict.COMPILE_ERROR)


class RunningDaemon:
    """A daemon in a child process, and the two doors between it and the test."""

    def __init__(
        self, config: DaemonConfig, evaluate: Evaluate, fault: str = "", device: str = "cpu"
    ) -> None:
        """Start it; `device` is the slug of its device."""
        self.config = config
        self.connection = redis.Redis.from_url(config.redis_url)
        self.process = self._started(evaluate, fault)
        self.queue = Queue(
            f"device-{device}", connection=self.connection, serializer=JSONSerializer
        )

    def _started(self, evaluate: Evaluate, fault: str) -> ForkProcess:
        """A daemon that has said something.

        The process of the tests has threads of earlier tests, and what is forked from it can hang
        before its first line, in a lock that one of them held. A daemon of its own has none.
        """
        patience_s = FIRST_WORD_S[self.config.kind]
        for _ in range(FORKS):
            process = FORK.Process(target=_serve, args=(self.config, evaluate, fault))
            process.start()
            deadline = time.monotonic() + patience_s
            while time.monotonic() < deadline and process.is_alive():
                if self.connection.exists(EVENT_STREAM):
                    return process
                time.sleep(0.02)
            if not process.is_alive():
                return process
            if process.pid:
                os.kill(process.pid, signal.SIGUSR1)
                time.sleep(0.5)
            process.kill()
            process.join()
        raise AssertionError(f"none of {FORKS} daemons said anything in {patience_s:g} s")

    def enqueue(self, request: EvaluationRequest) -> Any:
        """Enqueue as the site does."""
        return self.queue.enqueue(
            "gpu_runner.daemon.jobs.evaluate", codec.encode(request), job_timeout=60
        )

    def events(self, job_id: str = "e1") -> list[Event]:
        """All events so far of one job, or of the runner for ""."""
        return read_events(self.connection, job_id)

    def wait_for(self, kind: EventKind, job_id: str = "e1", timeout_s: float = 60.0) -> Event:
        """The first event of a kind."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for event in self.events(job_id):
                if event.kind is kind:
                    return event
            time.sleep(0.05)
        raise AssertionError(f"no {kind} in {timeout_s} s; there is: {self.events(job_id)}")

    def wait_for_state(self, state: str, timeout_s: float = 60.0) -> dict[str, Any]:
        """The newest heartbeat, once it has this state."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            beats = self.events("")
            if beats and beats[-1].payload["state"] == state:
                return dict(beats[-1].payload)
            time.sleep(0.05)
        raise AssertionError(f"never {state}: {self.events('')[-3:]}")

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout_s: float = 60.0) -> None:
        """Send a signal and wait for the end."""
        if self.process.is_alive() and self.process.pid:
            os.kill(self.process.pid, number)
        self.process.join(timeout_s)
        assert not self.process.is_alive()

    def kill(self) -> None:
        """End it and wait for its family's end: a slot that dies late would take a later job."""
        family = descendants(self.process.pid or 0)
        self.process.kill()
        self.process.join()
        while any(map(alive, family)):
            time.sleep(0.01)
        self.connection.close()


def descendants(pid: int) -> list[int]:
    """Process ids of everything that descends from `pid`; what ends meanwhile has none."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        children: list[int] = []
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            children = list(map(int, path.read_text().split()))
        for child in children:
            found += [child, *descendants(child)]
    return found


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def read_events(connection: redis.Redis, job_id: str) -> list[Event]:
    """All events of one job, in the order of the stream."""
    found = [
        codec.decode(Event, json.loads(fields[b"event"]))
        for _, fields in connection.xrange(EVENT_STREAM)
    ]
    return [event for event in found if event.job_id == job_id]


def _serve(config: DaemonConfig, evaluate: Evaluate, fault: str) -> None:
    faulthandler.register(signal.SIGUSR1)
    os._exit(work(config, evaluate=evaluate, probe_jail=lambda: fault))
