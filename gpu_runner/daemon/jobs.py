"""The jobs of a runner: evaluate a kernel, check a task, measure baselines, and report on it."""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from rq.timeouts import JobTimeoutException

from gpu_runner.daemon.events import EventStream, Reporter, Spool
from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.data import codec
from gpu_runner.data.baselines import BaselineReport, BaselineRequest
from gpu_runner.data.check import REPORT_LIMIT_BYTES, CheckRequest
from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.event import Event, EventKind, JobKind
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Direction, Stage, Verdict
from gpu_runner.supervisor.baseline_job import measure_baselines as measure_apart
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.killed import KilledFromOutside
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.oracle.pool import Oracles
from gpu_runner.supervisor.soundness.soundness import Progress
from gpu_runner.supervisor.soundness.task_check import check_task
from gpu_runner.supervisor.tools import health

logger = logging.getLogger(__name__)

ALIVE_S = 5.0  # chosen: a small part of the time after which the site calls a job silent
_LAST_SENDING_S = 10.0  # chosen: what is not sent by then, the reconciler finds
_LONGEST_REASON = 4000  # characters; of what is longer, both ends are kept

_IDS = {
    "evaluation_id": JobKind.EVALUATION,
    "check_id": JobKind.CHECK,
    "measurement_id": JobKind.BASELINES,
}
"""Field of a request that holds its job's id -> kind of that job."""

T = TypeVar("T")

Report = Callable[[Stage, str, str], None]
"""report(stage, "running" | "done", detail): the supervisor calls it at each step."""


class Evaluate(Protocol):
    """Runs the whole protocol; raises only where the fault is ours."""

    def __call__(
        self,
        request: EvaluationRequest,
        config: SupervisorConfig,
        report: Report,
        oracles: Oracles | None = None,
    ) -> EvaluationResult:
        """`oracles` may have one ready."""
        ...


CheckTask = Callable[[CheckRequest, SupervisorConfig, Progress], Mapping[str, Any]]
"""Makes a task's soundness report; raises `OracleError` where the task's own code fails."""

MeasureBaselines = Callable[[Task, Direction, SupervisorConfig, Progress], BaselineReport]
"""Measures all baselines of a task; raises as `CheckTask` does."""

After = Callable[[SupervisorConfig, Verdict], str]
"""Looks at the device after such a verdict, and marks it unfit if it does not work any more."""


@dataclass(frozen=True, kw_only=True)
class JobContext:
    """What a job gets from its daemon."""

    runner: str
    supervisor: SupervisorConfig
    state: SlotState
    stream: EventStream
    spool: Spool
    evaluate: Evaluate
    check_task: CheckTask = check_task
    measure_baselines: MeasureBaselines = measure_apart
    after: After = health.after
    alive_s: float = ALIVE_S


def identity(request: object) -> tuple[JobKind, str, int]:
    """Kind of job, its id and attempt of a raw request; raises `DataError`."""
    if not isinstance(request, Mapping):
        raise DataError("request", "must be an object")
    field = next((name for name in _IDS if name in request), "evaluation_id")
    job_id, attempt = request.get(field), request.get("attempt", 1)
    if not isinstance(job_id, str) or not 0 < len(job_id) <= 100:
        raise DataError(field, "must be a string of 1 to 100 characters")
    if not isinstance(attempt, int) or isinstance(attempt, bool) or not 0 < attempt < 1 << 31:
        raise DataError("attempt", "must be a whole number from 1")
    return _IDS[field], job_id, attempt


def evaluate(request: Mapping[str, Any], *, context: JobContext) -> str:
    """Evaluate an encoded `EvaluationRequest` and return the verdict.

    Everything else goes into the event stream: STARTED, STAGE, ALIVE and FINISHED, or LOST where
    this version of the runner cannot read the request (raises `DataError` then).
    """
    with _attempt(EvaluationRequest, request, context) as (decoded, journal):
        result = _evaluate(decoded, context, journal)
        journal.write(EventKind.FINISHED, {"result": codec.encode(result)}, keep=True)
    _look_after(context, result.verdict, result.evaluation_id)
    return result.verdict.value


def measure_baselines(request: Mapping[str, Any], *, context: JobContext) -> str:
    """Measure the baselines of an encoded `BaselineRequest`; "" or why there are none.

    Reports as `evaluate` does. A task whose own code fails ends like any other measurement.
    """

    def measure(decoded: BaselineRequest, tell: Progress) -> dict[str, Any]:
        report = context.measure_baselines(
            decoded.task, decoded.direction, context.supervisor, tell
        )
        return {"report": codec.encode(report)}

    return _apart(BaselineRequest, request, context, measure)


def filter_task(request: Mapping[str, Any], *, context: JobContext) -> str:
    """Make the soundness report of the task of an encoded `CheckRequest`; "" or why there is none.

    Reports as `evaluate` does. A task whose own code fails ends like any other check.
    """

    def check(decoded: CheckRequest, tell: Progress) -> dict[str, Any]:
        report = codec.encode(context.check_task(decoded, context.supervisor, tell))
        size = len(json.dumps(report))
        if size <= REPORT_LIMIT_BYTES:
            return {"report": report}
        return {"reason": f"its report has {size} bytes, at most {REPORT_LIMIT_BYTES} are read"}

    return _apart(CheckRequest, request, context, check)


def _apart(
    cls: type[T],
    request: Mapping[str, Any],
    context: JobContext,
    make: Callable[[T, Progress], dict[str, Any]],
) -> str:
    """Do a job that is about a task and no submission; "" or why nothing came of it.

    What this host has ended is LOST: another attempt may go well.
    """
    with _attempt(cls, request, context) as (decoded, journal):
        try:
            outcome = _made(lambda tell: make(decoded, tell), context, journal)
            journal.write(EventKind.FINISHED, outcome, keep=True)
        except KilledFromOutside as error:
            outcome = {"runner": context.runner, "reason": str(error)}
            journal.write(EventKind.LOST, outcome, keep=True)
    reason = str(outcome.get("reason", ""))
    verdict = Verdict.RUNTIME_ERROR if reason else Verdict.CORRECT
    _look_after(context, verdict, identity(request)[1])
    return reason


class Journal:
    """Numbers the events of one attempt and hands them to the reporter."""

    def __init__(
        self, job: JobKind, job_id: str, attempt: int, state: SlotState, reporter: Reporter
    ) -> None:
        """Write for this attempt, with the numbers that `state` counts."""
        self._job = job
        self._job_id = job_id
        self._attempt = attempt
        self._state = state
        self._reporter = reporter
        self._lock = threading.Lock()

    def write(self, kind: EventKind, payload: Mapping[str, Any], *, keep: bool = False) -> None:
        """Report one event; with `keep` it is the last word, and safe when this returns."""
        with self._lock:
            event = Event(
                job=self._job,
                job_id=self._job_id,
                attempt=self._attempt,
                seq=self._state.next_seq(),
                kind=kind,
                payload=payload,
            )
            self._reporter.publish(event, keep=keep)
            if keep:
                self._state.finish()


@contextmanager
def _attempt(
    cls: type[T], request: Mapping[str, Any], context: JobContext
) -> Iterator[tuple[T, Journal]]:
    """Report the beginning of a job; inside, the request and where to report the rest of it."""
    reporter = Reporter(context.stream, context.spool)
    journal = Journal(*identity(request), context.state, reporter)
    try:
        journal.write(EventKind.STARTED, {"runner": context.runner, "at": time.time()})
        try:
            decoded = codec.decode(cls, request)
        except DataError as error:
            reason = f"the runner cannot read the request: {error}"
            journal.write(EventKind.LOST, {"runner": context.runner, "reason": reason}, keep=True)
            raise
        yield decoded, journal
    finally:
        reporter.close(_LAST_SENDING_S)


def _look_after(context: JobContext, verdict: Verdict, about: str) -> None:
    """Look at the device; nobody waits for it, and the outcome stands whatever is found."""
    if reason := context.after(context.supervisor, verdict):
        logger.error("%s is unfit after %s: %s", context.supervisor.device, about, reason)


@contextmanager
def _saying_alive(context: JobContext, journal: Journal) -> Iterator[None]:
    ended = threading.Event()

    def say() -> None:
        while not ended.wait(context.alive_s):
            journal.write(EventKind.ALIVE, {"runner": context.runner})

    beat = threading.Thread(target=say, name="alive", daemon=True)
    beat.start()
    try:
        yield
    finally:
        ended.set()
        beat.join()


def _evaluate(
    request: EvaluationRequest, context: JobContext, journal: Journal
) -> EvaluationResult:
    began_at = time.monotonic()

    def report(stage: Stage, state: str, detail: str) -> None:
        elapsed_s = time.monotonic() - began_at
        payload = {"stage": stage, "state": state, "elapsed_s": elapsed_s, "detail": detail}
        journal.write(EventKind.STAGE, codec.encode(payload))

    with _saying_alive(context, journal):
        try:
            return context.evaluate(request, context.supervisor, report)
        except Exception as error:
            logger.exception("the evaluation %s failed, through our fault", request.evaluation_id)
            return _system_error(request, error)


def _made(
    make: Callable[[Progress], dict[str, Any]], context: JobContext, journal: Journal
) -> dict[str, Any]:
    """Payload of the event that ends a job about a task; raises `KilledFromOutside` alone."""
    began_at = time.monotonic()
    stage = "it had not begun"

    def progress(text: str) -> None:
        nonlocal stage
        stage = text
        elapsed_s = time.monotonic() - began_at
        journal.write(EventKind.STAGE, {"detail": text, "elapsed_s": elapsed_s})

    with _saying_alive(context, journal):
        try:
            return make(progress)
        except KilledFromOutside:
            raise
        except OracleError as error:
            reason = str(error)
        except JobTimeoutException:
            elapsed_s = time.monotonic() - began_at
            reason = f"stopped after {elapsed_s:.0f} s, the most that it may take, at: {stage}"
        except Exception as error:
            logger.exception("a job about a task failed, through our fault")
            reason = _our_fault(error)
    return {"reason": _shortened(reason)}


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
