"""Record the events that runners report; the same event twice changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.event import Event, EventKind, RunnerState
from gpu_runner.data.verdict import Mode, Stage
from runs_app.baselines import services as baselines
from runs_app.errors import EventError
from runs_app.integrity import audits, quarantine
from runs_app.models import Evaluation, Result, Runner, Status
from runs_app.runners import job_events
from runs_app.runners.heartbeats import record_runner
from runs_app.text import storable
from runs_app.work import journal, lifecycle, outcome
from tasks_app.disclosure import public_reason


@transaction.atomic
def record_event(*, event: Event, now: datetime) -> bool:
    """Store one event and what follows from it; False if it was known before.

    Raises `EventError` or `DataError` for an event that cannot be true; nothing is stored then.
    Events of an attempt that was given up, or after the end, are kept but change nothing.
    """
    if event.kind is EventKind.RUNNER:
        return record_runner(state=codec.decode(RunnerState, storable(event.payload)), now=now)
    try:
        evaluation = lifecycle.lock(event.evaluation_id)
    except Evaluation.DoesNotExist:
        return job_events.record(event, now)
    except (ValidationError, ValueError):
        raise EventError(f"there is no evaluation {event.evaluation_id!r}") from None
    if event.attempt > evaluation.attempt:
        raise EventError(f"attempt {event.attempt} has not begun")
    late = event.attempt != evaluation.attempt or evaluation.is_over
    if event.kind is EventKind.ALIVE:
        return not late and _alive(evaluation, now)
    if evaluation.events.filter(attempt=event.attempt, seq=event.seq).exists():
        return False
    payload = storable(event.payload)
    if late:
        kept = {key: value for key, value in payload.items() if key != "result"}
        journal.write_ignored(
            evaluation, event.kind.value, kept, now=now, attempt=event.attempt, seq=event.seq
        )
        return True
    evaluation.last_event_at = now
    _HANDLERS[event.kind](evaluation, event.seq, payload, now)
    return True


def _alive(evaluation: Evaluation, now: datetime) -> bool:
    evaluation.last_event_at = now
    evaluation.save(update_fields=["last_event_at"])
    return True


def _started(evaluation: Evaluation, seq: int, payload: dict[str, Any], now: datetime) -> None:
    evaluation.runner = Runner.objects.filter(name=payload.get("runner", "")).first()
    evaluation.runner_boot_id = evaluation.runner.boot_id if evaluation.runner else ""
    evaluation.started_at = evaluation.started_at or now
    evaluation.status = Status.RUNNING
    evaluation.save()
    journal.write(evaluation, "started", payload, now=now, seq=seq)


def _stage(evaluation: Evaluation, seq: int, payload: dict[str, Any], now: datetime) -> None:
    try:
        evaluation.stage = Stage(str(payload.get("stage"))).value
    except ValueError:
        raise EventError(f"{payload.get('stage')!r} is no stage") from None
    evaluation.started_at = evaluation.started_at or now
    evaluation.status = Status.RUNNING
    evaluation.save()
    journal.write(evaluation, "stage", payload, now=now, seq=seq)


def _finished(evaluation: Evaluation, seq: int, payload: dict[str, Any], now: datetime) -> None:
    document = payload.get("result")
    result = codec.decode(EvaluationResult, document, "result")
    outcome.check(evaluation, result)
    if result.retryable and evaluation.attempt < settings.MAX_ATTEMPTS:  # its host was the cause
        reason = public_reason(codec.encode(result), evaluation.task_version.hidden_names)
        lifecycle.try_again(evaluation, reason=reason, now=now, seq=seq)
        return
    result = baselines.joined(evaluation, result, now)
    outcome.apply(evaluation, result)
    quarantine.hold(evaluation, result, now=now)
    lifecycle.end(evaluation, Status.FINISHED, now=now)
    Result.objects.create(evaluation=evaluation, document=codec.encode(result))
    summary = {
        "verdict": evaluation.verdict,
        "reason": evaluation.reason,
        "latency_ns": evaluation.latency_ns,
        "speedup": evaluation.speedup_best,
        "quarantine": evaluation.quarantine,
    }
    journal.write(evaluation, "finished", summary, now=now, seq=seq)
    if evaluation.mode == Mode.AUDIT:
        audits.settle(evaluation, result, now=now)
    if evaluation.mode in (Mode.AUDIT, Mode.RANKED):
        audits.recheck(evaluation, now=now)
        audits.consider(evaluation, now=now)


def _lost(evaluation: Evaluation, seq: int, payload: dict[str, Any], now: datetime) -> None:
    reason = str(payload.get("reason") or "the runner lost it")
    lifecycle.retry_or_give_up(evaluation, reason=reason, now=now, seq=seq)


_HANDLERS: dict[EventKind, Callable[[Evaluation, int, dict[str, Any], datetime], None]] = {
    EventKind.STARTED: _started,
    EventKind.STAGE: _stage,
    EventKind.FINISHED: _finished,
    EventKind.LOST: _lost,
}
