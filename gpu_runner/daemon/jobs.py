"""The one job of a runner: evaluate a request and report every step of it."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_runner.daemon.events import EventStream, Reporter, Spool
from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.verdict import Stage, Verdict
from gpu_runner.supervisor import health
from gpu_runner.supervisor.config import SupervisorConfig

logger = logging.getLogger(__name__)

ALIVE_S = 5.0
_LAST_SENDING_S = 10.0

Report = Callable[[Stage, str, str], None]
"""report(stage, "running" | "done", detail): the supervisor calls it at each step."""

Evaluate = Callable[[EvaluationRequest, SupervisorConfig, Report], EvaluationResult]
"""Runs the whole protocol; raises only where the fault is ours."""

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
    after: After = health.after
    alive_s: float = ALIVE_S


def identity(request: object) -> tuple[str, int]:
    """Evaluation id and attempt of a raw request; raises `DataError` where it has none."""
    if not isinstance(request, Mapping):
        raise DataError("request", "must be an object")
    evaluation_id, attempt = request.get("evaluation_id"), request.get("attempt", 1)
    if not isinstance(evaluation_id, str) or not 0 < len(evaluation_id) <= 100:
        raise DataError("evaluation_id", "must be a string of 1 to 100 characters")
    if not isinstance(attempt, int) or isinstance(attempt, bool) or not 0 < attempt < 1 << 31:
        raise DataError("attempt", "must be a whole number from 1")
    return evaluation_id, attempt


def evaluate(request: Mapping[str, Any], *, context: JobContext) -> str:
    """Evaluate an encoded `EvaluationRequest` and return the verdict.

    Everything else goes into the event stream: STARTED, STAGE, ALIVE and FINISHED, or LOST where
    this version of the runner cannot read the request (raises `DataError` then).
    """
    evaluation_id, attempt = identity(request)
    reporter = Reporter(context.stream, context.spool)
    journal = Journal(evaluation_id, attempt, context.state, reporter)
    try:
        journal.write(EventKind.STARTED, {"runner": context.runner, "at": time.time()})
        try:
            decoded = codec.decode(EvaluationRequest, request)
        except DataError as error:
            reason = f"the runner cannot read the request: {error}"
            journal.write(EventKind.LOST, {"runner": context.runner, "reason": reason}, keep=True)
            raise
        result = _evaluate(decoded, context, journal)
        journal.write(EventKind.FINISHED, {"result": codec.encode(result)}, keep=True)
    finally:
        reporter.close(_LAST_SENDING_S)
    # The author does not wait for it, and the verdict stands whatever is found.
    if reason := context.after(context.supervisor, result.verdict):
        logger.error("%s is unfit after evaluation %s: %s", result.device, evaluation_id, reason)
    return result.verdict.value


class Journal:
    """Numbers the events of one attempt and hands them to the reporter."""

    def __init__(
        self, evaluation_id: str, attempt: int, state: SlotState, reporter: Reporter
    ) -> None:
        """Write for this attempt, with the numbers that `state` counts."""
        self._evaluation_id = evaluation_id
        self._attempt = attempt
        self._state = state
        self._reporter = reporter
        self._lock = threading.Lock()

    def write(self, kind: EventKind, payload: Mapping[str, Any], *, keep: bool = False) -> None:
        """Report one event; with `keep` it is the last word, and safe when this returns."""
        with self._lock:
            event = Event(
                evaluation_id=self._evaluation_id,
                attempt=self._attempt,
                seq=self._state.next_seq(),
                kind=kind,
                payload=payload,
            )
            self._reporter.publish(event, keep=keep)
            if keep:
                self._state.finish()


def _evaluate(
    request: EvaluationRequest, context: JobContext, journal: Journal
) -> EvaluationResult:
    began_at = time.monotonic()

    def report(stage: Stage, state: str, detail: str) -> None:
        elapsed_s = time.monotonic() - began_at
        payload = {"stage": stage, "state": state, "elapsed_s": elapsed_s, "detail": detail}
        journal.write(EventKind.STAGE, codec.encode(payload))

    ended = threading.Event()
    beat = threading.Thread(
        target=_say_alive, args=(context, journal, ended), name="alive", daemon=True
    )
    beat.start()
    try:
        return context.evaluate(request, context.supervisor, report)
    except Exception as error:
        logger.exception("the evaluation %s failed, through our fault", request.evaluation_id)
        return _system_error(request, error)
    finally:
        ended.set()
        beat.join()


def _say_alive(context: JobContext, journal: Journal, ended: threading.Event) -> None:
    while not ended.wait(context.alive_s):
        journal.write(EventKind.ALIVE, {"runner": context.runner})


def _system_error(request: EvaluationRequest, error: Exception) -> EvaluationResult:
    return EvaluationResult(
        evaluation_id=request.evaluation_id,
        attempt=request.attempt,
        verdict=Verdict.SYSTEM_ERROR,
        reason=f"the runner failed: {error or type(error).__name__}".splitlines()[0],
        mode=request.mode,
        device=request.device,
        task=request.task.name,
        task_digest=request.task.digest(),
        solution_digest=request.solution.digest(),
        log="".join(traceback.format_exception(error)),
    )
