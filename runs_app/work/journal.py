"""Store what happened to an evaluation, and tell its watchers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from runs_app.messaging import broadcast
from runs_app.models import Evaluation, EvaluationEvent


def write(
    evaluation: Evaluation,
    kind: str,
    payload: dict[str, Any],
    *,
    now: datetime,
    seq: int | None = None,
) -> EvaluationEvent:
    """Append an event to a locked evaluation, whose other changes the caller has saved."""
    event = _append(evaluation, kind, payload, now, attempt=evaluation.attempt, seq=seq)
    broadcast.send_event(evaluation, event)
    return event


def write_ignored(
    evaluation: Evaluation,
    kind: str,
    payload: dict[str, Any],
    *,
    now: datetime,
    attempt: int,
    seq: int,
) -> EvaluationEvent:
    """Keep an event that came too late to count; watchers are not told."""
    return _append(evaluation, kind, payload, now, attempt=attempt, seq=seq, ignored=True)


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
