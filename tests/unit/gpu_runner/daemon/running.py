"""Requests, stand-ins for the supervisor, and a daemon in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import json
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
from rq import Queue
from rq.serializers import JSONSerializer

from gpu_runner.daemon.config import DaemonConfig
from gpu_runner.daemon.jobs import JOBS, Evaluate, EvaluationJob
from gpu_runner.daemon.work import work
from gpu_runner.data import codec, mailbox
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.order import Ask, Order, Word
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Language, Mode, Stage, Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig

FORK = multiprocessing.get_context("fork")
FORKS = 3
_FAMILY_S = 10.0  # chosen: a slot that notices its death is gone in one
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
    request: EvaluationRequest, config: SupervisorConfig, report: Any, oracles: object = None
) -> EvaluationResult:
    """Stand-in for the supervisor: the source says how it behaves.

    "sleep S": work for S seconds; "until FILE": work until there is that file; "leak FILE": leave a
    process that appends to FILE every 50 ms, then wait; "raise": fail.
    """
    del config, oracles
    word, _, rest = request.solution.source.partition(" ")
    report(Stage.BUILD, "running", word)
    if word == "sleep":
        time.sleep(float(rest))
    elif word == "until":
        while not Path(rest).exists():
            time.sleep(0.02)
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


MAILBOX = "runner-1"
EVENTS = mailbox.events_key(MAILBOX)


def login(redis_url: str) -> str:
    """The address of a runner's login, made for the test."""
    with redis.Redis.from_url(redis_url) as client:
        client.execute_command("ACL", "SETUSER", MAILBOX, "on", ">pw", "~*", "&*", "+@all")
    return redis_url.replace("redis://", f"redis://{MAILBOX}:pw@")


def make_order(request: EvaluationRequest, timeout_s: int = 60) -> Order:
    """What a site hands over for an evaluation."""
    return Order(
        kind=EvaluationRequest.KIND,
        job_id=request.evaluation_id,
        attempt=request.attempt,
        timeout_s=timeout_s,
        request=codec.encode(request),
    )


class StandInSite:
    """Answers the asks of a runner with the orders that a test has queued."""

    def __init__(self, redis_url: str, *, answers: bool = True) -> None:
        """Answer until it is closed, unless it is not to."""
        self.connection = redis.Redis.from_url(redis_url)
        self.answers = answers
        self.orders: dict[str, Order] = {}
        self.asks: list[Ask] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def put(self, order: Order, device: str = "cpu") -> None:
        """Queue an order."""
        name = str(order.name)
        self.orders[name] = order
        queue = Queue(f"device-{device}", connection=self.connection, serializer=JSONSerializer)
        queue.push_job_id(mailbox.rq_id(device, name))

    def say(self, runner: str, word: Word) -> None:
        """Have the runner read this."""
        document = json.dumps(codec.encode(word))
        self.connection.set(mailbox.word_key(MAILBOX, runner), document)

    def _answer(self) -> None:
        last = b"0"
        while not self._ended.wait(0.01):
            try:
                entries = self.connection.xrange(EVENTS, min=b"(" + last)
            except redis.RedisError:
                continue  # a test has stopped it
            for identity, fields in entries:
                last = identity
                if b"ask" in fields:
                    ask = codec.decode(Ask, json.loads(fields[b"ask"]))
                    self.asks.append(ask)
                    if self.answers:
                        self.answer(ask)

    def answer(self, ask: Ask) -> None:
        """Hand the job over."""
        order: Any = self.orders.get(ask.job)
        answer = order if isinstance(order, str) else json.dumps(codec.encode(order))
        self.connection.rpush(mailbox.answer_key(MAILBOX, ask.ticket), answer)

    def close(self) -> None:
        """Answer nothing more."""
        self._ended.set()
        self._thread.join()
        self.connection.close()


class RunningDaemon:
    """A daemon in a child process, and the two doors between it and the test."""

    def __init__(
        self,
        config: DaemonConfig,
        evaluate: Evaluate,
        fault: str = "",
        device: str = "cpu",
        login_url: str = "",
    ) -> None:
        """Start it on `config.redis_url`; `device` is the slug of its device.

        login_url: of a runner of a real site, which then answers it; else a `StandInSite` does.
        """
        self.connection = redis.Redis.from_url(config.redis_url)
        self.site = StandInSite(config.redis_url, answers=not login_url)
        self.device, self.url = device, config.redis_url
        self.config = dataclasses.replace(config, redis_url=login_url or login(config.redis_url))
        self.stream = mailbox.events_key(urlsplit(self.config.redis_url).username or "")
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
                if self.connection.exists(self.stream):
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

    def enqueue(self, request: EvaluationRequest) -> None:
        """Queue it as the site does."""
        self.site.put(make_order(request), self.device)

    def events(self, job_id: str = "e1") -> list[Event]:
        """All events so far of one job, or of the runner for ""."""
        return read_events(self.connection, job_id, self.stream)

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
        deadline = time.monotonic() + _FAMILY_S
        while left := list(filter(alive, family)):
            if time.monotonic() > deadline:
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                raise AssertionError(f"processes {left} outlived the daemon by {_FAMILY_S:g} s")
            time.sleep(0.01)
        self.site.close()
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


def read_events(connection: redis.Redis, job_id: str, stream: str = EVENTS) -> list[Event]:
    """All events of one job, in the order of the stream."""
    found = [
        codec.decode(Event, json.loads(fields[b"event"]))
        for _, fields in connection.xrange(stream)
        if b"event" in fields
    ]
    return [event for event in found if event.job_id == job_id]


def _serve(config: DaemonConfig, evaluate: Evaluate, fault: str) -> None:
    faulthandler.register(signal.SIGUSR1)
    JOBS[EvaluationRequest.KIND] = EvaluationJob(evaluate)
    os._exit(work(config, probe_jail=lambda: fault))
