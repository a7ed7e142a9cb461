"""The jobs of a runner, a class for each kind, and how one is done and reported on."""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from gpu_runner.daemon.events import Outbox, Reporter
from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.daemon.sources.contract import Source
from gpu_runner.data import codec
from gpu_runner.data.baselines import BaselineRequest
from gpu_runner.data.check import REPORT_LIMIT_BYTES, CheckRequest
from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.event import EventKind
from gpu_runner.data.order import JobName, Order
from gpu_runner.data.verdict import Stage, Verdict
from gpu_runner.supervisor.baseline_job import measure_baselines
from gpu_runner.supervisor.evaluate import PASSING
from gpu_runner.supervisor.evaluate import evaluate as supervise
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.killed import shortage
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.runner.pool import Oracles
from gpu_runner.supervisor.soundness.soundness import Progress, check_task
from gpu_runner.supervisor.tools import health

logger = logging.getLogger(__name__)

ALIVE_S = 5.0  # chosen: a small part of the time after which the site calls a job silent
_LAST_SENDING_S = 10.0  # chosen: what is not sent by then, the reconciler finds
_LONGEST_REASON = 4000  # characters; of what is longer, both ends are kept


class JobTimeout(Exception):
    """The job may take no longer."""


Evaluate = Callable[..., EvaluationResult]  # as the supervisor's `evaluate`
Make = Callable[[Any, SupervisorConfig, Progress], Any]
"""Makes a report on a task; raises `OracleError` where the task's own code fails."""

After = Callable[[SupervisorConfig, Verdict], str]
"""Looks at the device after such a verdict, and marks it unfit if it does not work any more."""


@dataclass(frozen=True, kw_only=True)
class JobContext:
    runner: str
    supervisor: SupervisorConfig
    state: SlotState
    source: Source
    outbox: Outbox
    oracles: Oracles | None = None
    after: After = health.after
    alive_s: float = ALIVE_S


@dataclass(frozen=True)
class End:
    """How a job ended: its last event, and the verdict after which the device is looked at.

    reason: of an evaluation its verdict; of another job why it came to nothing, or empty.
    """

    kind: EventKind
    payload: Mapping[str, object]
    verdict: Verdict
    reason: str


def do(order: Order, context: JobContext) -> str:
    """Do a job and report on it, to its end; returns the `reason` of that.

    It reports STARTED, STAGE, ALIVE and FINISHED, or LOST where this host is the cause, or where
    this version of the runner cannot read the request.
    """
    reporter = Reporter(context.source, context.outbox)
    journal = Journal(order.name, context.state, reporter)
    try:
        journal.write(EventKind.STARTED, {"runner": context.runner, "at": time.time()})
        try:
            job, request = _read(order)
        except DataError as error:
            reason = f"the runner cannot read the request: {error}"
            journal.write(EventKind.LOST, {"reason": reason}, keep=True)
            return reason
        with _saying_alive(context, journal):
            end = job.do(request, context, journal)
        journal.write(end.kind, end.payload, keep=True)
    finally:
        reporter.close(_LAST_SENDING_S)
    if reason := context.after(context.supervisor, end.verdict):
        # Nobody waits for this look at the device, and the outcome stands whatever is found.
        logger.error("%s is unfit after %s: %s", context.supervisor.device, order.name, reason)
    return end.reason


def _read(order: Order) -> tuple[Job, object]:
    """What does a job of that kind, and its request; raises `DataError`."""
    if order.kind not in JOBS:
        raise DataError("kind", f"this runner doesn't know jobs of the kind {order.kind!r}")
    job = JOBS[order.kind]
    return job, codec.decode(job.request, order.request)


class Job(ABC):
    """A kind of job: how it is asked for, what does it, and how it ends. `JOBS` lists them."""

    request: ClassVar[type[object]]  # whose `KIND` is the name on the wire

    @abstractmethod
    def do(self, request: Any, context: JobContext, journal: Journal) -> End:
        """Do one such job; `journal` is told how far it is."""


@dataclass(frozen=True)
class EvaluationJob(Job):
    """Evaluates a kernel; a failure of ours is a verdict as well."""

    request = EvaluationRequest
    evaluate: Evaluate = supervise

    def do(self, request: EvaluationRequest, context: JobContext, journal: Journal) -> End:
        """End with a result."""
        began_at = time.monotonic()

        def report(stage: Stage, state: str, detail: str) -> None:
            elapsed_s = time.monotonic() - began_at
            payload = {"stage": stage, "state": state, "elapsed_s": elapsed_s, "detail": detail}
            journal.write(EventKind.STAGE, codec.encode(payload))

        try:
            result = self.evaluate(request, context.supervisor, report, oracles=context.oracles)
        except Exception as error:
            logger.exception("the runner failed during evaluation %s", request.evaluation_id)
            result = _system_error(request, error)
        payload = {"result": codec.encode(result)}
        return End(EventKind.FINISHED, payload, result.verdict, result.verdict.value)


@dataclass(frozen=True)
class TaskJob(Job):
    """A kind of job that judges no submission, and makes a report."""

    make: Make

    def do(self, request: object, context: JobContext, journal: Journal) -> End:
        """End with a report, or the reason why there is none.

        What this host has ended is LOST: another attempt, or another host, may do better.
        """
        began_at = time.monotonic()
        stage = "not started yet"

        def progress(text: str) -> None:
            nonlocal stage
            stage = text
            elapsed_s = time.monotonic() - began_at
            journal.write(EventKind.STAGE, {"detail": text, "elapsed_s": elapsed_s})

        kind = EventKind.FINISHED
        try:
            report = codec.encode(self.make(request, context.supervisor, progress))
            size = len(json.dumps(report))
            if size <= REPORT_LIMIT_BYTES:
                return End(kind, {"report": report}, Verdict.CORRECT, "")
            reason = f"its report is {size} bytes long; the limit is {REPORT_LIMIT_BYTES}"
        except PASSING as error:
            kind, reason = EventKind.LOST, str(error)
        except OracleError as error:
            reason = _shortened(str(error))
        except JobTimeout:
            elapsed_s = time.monotonic() - began_at
            reason = f"stopped at the time limit, after {elapsed_s:.0f} s; last stage: {stage}"
        except Exception as error:
            if lacking := shortage(error):
                kind, reason = EventKind.LOST, lacking
            else:
                logger.exception("the runner failed while working on a task")
                reason = _shortened(_our_fault(error))
        return End(kind, {"reason": reason}, Verdict.RUNTIME_ERROR, reason)


@dataclass(frozen=True)
class CheckJob(TaskJob):
    """Makes a task's soundness report."""

    request = CheckRequest
    make: Make = check_task


@dataclass(frozen=True)
class BaselinesJob(TaskJob):
    """Measures all baselines of a task."""

    request = BaselineRequest
    make: Make = measure_baselines


JOBS: dict[str, Job] = {
    job.request.KIND: job for job in (EvaluationJob(), CheckJob(), BaselinesJob())
}
"""All kinds of job, by their names on the wire."""


class Journal:
    """Numbers the events of one attempt and hands them to the reporter."""

    def __init__(self, job: JobName, state: SlotState, reporter: Reporter) -> None:
        """Write for this attempt, with the numbers that `state` counts."""
        self._job = job
        self._state = state
        self._reporter = reporter
        self._lock = threading.Lock()

    def write(self, kind: EventKind, payload: Mapping[str, object], *, keep: bool = False) -> None:
        """Report one event; with `keep` it is the last word, and safe when this returns."""
        with self._lock:
            event = self._job.event(self._state.next_seq(), kind, payload)
            self._reporter.publish(event, keep=keep)
            if keep:
                self._state.finish()


@contextmanager
def _saying_alive(context: JobContext, journal: Journal) -> Iterator[None]:
    ended = threading.Event()

    def say() -> None:
        while not ended.wait(context.alive_s):
            journal.write(EventKind.ALIVE, {})

    beat = threading.Thread(target=say, name="alive", daemon=True)
    beat.start()
    try:
        yield
    finally:
        ended.set()
        beat.join()


def _shortened(text: str) -> str:
    half = _LONGEST_REASON // 2
    return text if len(text) <= _LONGEST_REASON else f"{text[:half]}\n[...]\n{text[-half:]}"


def _our_fault(error: Exception) -> str:
    return f"the runner failed: {str(error) or type(error).__name__}".splitlines()[0]


def _system_error(request: EvaluationRequest, error: Exception) -> EvaluationResult:
    return EvaluationResult(
        evaluation_id=request.evaluation_id,
        attempt=request.attempt,
        verdict=Verdict.SYSTEM_ERROR,
        reason=_our_fault(error),
        mode=request.mode,
        device=request.device,
        task=request.task.name,
        task_digest=request.task.digest(),
        solution_digest=request.solution.digest(),
        log="".join(traceback.format_exception(error)),
    )
