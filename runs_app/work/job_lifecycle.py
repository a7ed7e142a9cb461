"""Changes of the status of a job about a task version; the caller holds a lock on the row."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from runs_app.messaging import broadcast, queues
from runs_app.messaging.queues import Job
from runs_app.models import BaselineMeasurement, Status, TaskCheck

KINDS: tuple[type[Job], ...] = (TaskCheck, BaselineMeasurement)


def lock(job_id: UUID | str) -> Job | None:
    """The row with that id, whichever kind it is, locked until the transaction ends."""
    for kind in KINDS:
        row: Job | None = kind.objects.select_for_update(of=("self",)).filter(pk=job_id).first()
        if row is not None:
            return row
    return None


def queue(job: Job) -> None:
    """Send the current attempt to its device's queue, once the transaction is committed."""
    broadcast.send_job(job)
    transaction.on_commit(lambda: queues.enqueue(job))


def retry_or_give_up(job: Job, *, reason: str, now: datetime) -> None:
    """Begin the next attempt of a job that was lost, or end it with the reason."""
    lost = job.attempt
    transaction.on_commit(lambda: queues.drop(job, lost))
    if lost >= settings.MAX_ATTEMPTS:
        end(job, reason=f"lost {lost} times; the last time: {reason}", now=now)
        return
    job.status = Status.QUEUED
    job.attempt, job.last_seq = lost + 1, 0
    job.reason, job.stage = reason, ""
    job.runner, job.runner_boot_id = None, ""
    job.queued_at, job.started_at, job.last_event_at = now, None, None
    job.save()
    queue(job)


def end(
    job: Job, *, now: datetime, reason: str = "", status: Status = Status.FINISHED, **outcome: Any
) -> None:
    """Store how it ended: with the columns of its outcome, or without one, and why."""
    assert not job.is_over, f"{job} has ended before"
    job.status, job.reason, job.finished_at = status, reason, now
    for column, value in outcome.items():
        setattr(job, column, value)
    job.save()
    broadcast.send_job(job)
