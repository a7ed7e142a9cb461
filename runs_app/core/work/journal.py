"""Tell the watchers of a job what happened to it, and of an evaluation, store it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from runs_app.core.messaging import broadcast
from runs_app.models import EvaluationEvent, RunnerJob

_held: ContextVar[list[EvaluationEvent] | None] = ContextVar("held", default=None)


def tell(
    job: RunnerJob, kind: str, payload: dict[str, Any], *, now: datetime, seq: int | None = None
) -> None:
    """Say what happened to a locked job; the caller then saves it, with all that has changed.

    Of an evaluation it is stored as well. Of others only the queue is told, and no `payload`.
    """
    event: EvaluationEvent | None = job.next_event(
        kind=kind, payload=payload, created_at=now, seq=seq
    )
    if event is not None:
        held = _held.get()
        if held is None:
            event.save(force_insert=True)
        else:
            held.append(event)
        broadcast.send_event(event.evaluation, event)
    elif kind in broadcast.LIFECYCLE:
        broadcast.send_job(job)


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
