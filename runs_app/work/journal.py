"""Tell the watchers of a job what happened to it, and of an evaluation, store it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gpu_runner.data.event import Event, EventKind
from runs_app.messaging import broadcast
from runs_app.models import Evaluation, EvaluationEvent, RunnerJob


def write(
    job: RunnerJob,
    kind: str,
    payload: dict[str, Any],
    *,
    now: datetime,
    seq: int | None = None,
) -> None:
    """Say what happened to a locked job, whose other changes the caller has saved.

    Of an evaluation it is stored as well. Of others only the queue is told, and no `payload`.
    """
    if isinstance(job, Evaluation):
        event = _append(job, kind, payload, now, attempt=job.attempt, seq=seq)
        broadcast.send_event(job, event)
    elif kind in broadcast.LIFECYCLE:
        broadcast.send_job(job)


def keep_late(job: RunnerJob, event: Event, payload: dict[str, Any], now: datetime) -> bool:
    """Store what came too late to count for an evaluation; watchers are not told.

    False if it was known before, or is nothing to be kept.
    """
    if not isinstance(job, Evaluation) or event.kind is EventKind.ALIVE:
        return False
    if job.events.filter(attempt=event.attempt, seq=event.seq).exists():
        return False
    kept = {key: value for key, value in payload.items() if key != "result"}
    columns = {"attempt": event.attempt, "seq": event.seq, "ignored": True}
    _append(job, event.kind.value, kept, now, **columns)
    return True


def _append(
    evaluation: Evaluation, kind: str, payload: dict[str, Any], now: datetime, **columns: Any
) -> EvaluationEvent:
    evaluation.events_stored += 1
    evaluation.save(update_fields=["events_stored"])
    return EvaluationEvent.objects.create(
        evaluation=evaluation,
        position=evaluation.events_stored,
        kind=kind,
        payload=payload,
        created_at=now,
        **columns,
    )
