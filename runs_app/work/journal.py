"""Tell the watchers of a job what happened to it, and of an evaluation, store it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
    say(job, kind, payload, now=now, seq=seq)
    if isinstance(job, Evaluation):
        job.save(update_fields=["events_stored"])


def say(
    job: RunnerJob,
    kind: str,
    payload: dict[str, Any],
    *,
    now: datetime,
    seq: int | None = None,
) -> None:
    """The same before the caller saves the job, with all that has changed."""
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
    job.save(update_fields=["events_stored"])
    return True


_held: ContextVar[list[EvaluationEvent] | None] = ContextVar("held", default=None)


@contextmanager
def together() -> Iterator[None]:
    """Store the events of what is within at its end, all at once.

    Use it within one transaction. An event that is sent twice there fails it as a whole.
    """
    events: list[EvaluationEvent] = []
    token = _held.set(events)
    try:
        yield
        EvaluationEvent.objects.bulk_create(events)
    finally:
        _held.reset(token)


def _append(
    evaluation: Evaluation, kind: str, payload: dict[str, Any], now: datetime, **columns: Any
) -> EvaluationEvent:
    event = EvaluationEvent(
        evaluation=evaluation,
        position=evaluation.events_stored + 1,
        kind=kind,
        payload=payload,
        created_at=now,
        **columns,
    )
    held = _held.get()
    if held is None:
        event.save(force_insert=True)
    else:
        held.append(event)
    evaluation.events_stored += 1
    return event
