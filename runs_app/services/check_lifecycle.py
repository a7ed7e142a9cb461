"""Changes of a check's status; the caller holds a lock on the row."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from runs_app import broadcast, queues
from runs_app.models import Status, TaskCheck


def lock(check_id: UUID | str) -> TaskCheck:
    """The check's row, locked until the transaction ends."""
    return TaskCheck.objects.select_for_update(of=("self",)).get(pk=check_id)


def queue(check: TaskCheck) -> None:
    """Send the current attempt to its device's queue, once the transaction is committed."""
    broadcast.send_check(check)
    transaction.on_commit(lambda: queues.enqueue(check))


def retry_or_give_up(check: TaskCheck, *, reason: str, now: datetime) -> None:
    """Begin the next attempt of a check that was lost, or end it with the reason."""
    lost = check.attempt
    transaction.on_commit(lambda: queues.drop(check, lost))
    if lost >= settings.MAX_ATTEMPTS:
        end(check, reason=f"lost {lost} times; the last time: {reason}", now=now)
        return
    check.status = Status.QUEUED
    check.attempt, check.last_seq = lost + 1, 0
    check.reason, check.stage = reason, ""
    check.runner, check.runner_boot_id = None, ""
    check.queued_at, check.started_at, check.last_event_at = now, None, None
    check.save()
    queue(check)


def end(
    check: TaskCheck,
    *,
    now: datetime,
    reason: str = "",
    passed: bool | None = None,
    status: Status = Status.FINISHED,
) -> None:
    """Store how it ended: with a report that passed or not, or without one, and why."""
    assert not check.is_over, f"check {check.pk} has ended before"
    check.status, check.passed, check.reason = status, passed, reason
    check.finished_at = now
    check.save()
    broadcast.send_check(check)
