"""What runners work at, whatever kind it is: how it is found and taken up again."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from runs_app.messaging.queues import Work
from runs_app.models import Evaluation, Status
from runs_app.work import job_lifecycle, lifecycle


def find(condition: Q) -> list[Work]:
    """All work that fulfils a condition on the columns that all kinds have."""
    kinds = (Evaluation, *job_lifecycle.KINDS)
    return [row for kind in kinds for row in kind.objects.filter(condition)]


def lock_in(seen: Work, status: Status) -> Work | None:
    """The locked row if it has that status still, else None."""
    lock = lifecycle.lock if isinstance(seen, Evaluation) else job_lifecycle.lock
    row: Work | None = lock(seen.pk)
    return row if row is not None and row.status == status else None


def queue_again(row: Work, *, reason: str, now: datetime) -> None:
    """Send the same attempt of a locked row to the queue that has lost it."""
    row.queued_at = now
    row.save(update_fields=["queued_at"])
    if isinstance(row, Evaluation):
        lifecycle.queue(row, kind="requeued", reason=reason, now=now)
    else:
        job_lifecycle.queue(row)


def retry_or_give_up(row: Work, *, reason: str, now: datetime) -> None:
    """Begin the next attempt of a locked row, or end it with the reason."""
    if isinstance(row, Evaluation):
        lifecycle.retry_or_give_up(row, reason=reason, now=now)
    else:
        job_lifecycle.retry_or_give_up(row, reason=reason, now=now)
