"""What runners work at, be it an evaluation or a check: how it is found and taken up again."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from runs_app.models import Evaluation, Status, TaskCheck
from runs_app.queues import Work
from runs_app.services import check_lifecycle, lifecycle


def find(condition: Q) -> list[Work]:
    """All work that fulfils a condition on the columns that both kinds have."""
    return [*Evaluation.objects.filter(condition), *TaskCheck.objects.filter(condition)]


def lock_in(seen: Work, status: Status) -> Work | None:
    """The locked row if it has that status still, else None."""
    lock = lifecycle.lock if isinstance(seen, Evaluation) else check_lifecycle.lock
    row: Work = lock(seen.pk)
    return row if row.status == status else None


def queue_again(row: Work, *, reason: str, now: datetime) -> None:
    """Send the same attempt of a locked row to the queue that has lost it."""
    row.queued_at = now
    row.save(update_fields=["queued_at"])
    if isinstance(row, Evaluation):
        lifecycle.queue(row, kind="requeued", reason=reason, now=now)
    else:
        check_lifecycle.queue(row)


def retry_or_give_up(row: Work, *, reason: str, now: datetime) -> None:
    """Begin the next attempt of a locked row, or end it with the reason."""
    if isinstance(row, Evaluation):
        lifecycle.retry_or_give_up(row, reason=reason, now=now)
    else:
        check_lifecycle.retry_or_give_up(row, reason=reason, now=now)
