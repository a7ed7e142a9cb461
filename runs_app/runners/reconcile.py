"""Find jobs that no runner works on any more, and see to it that one does."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from runs_app.messaging import queues
from runs_app.messaging.queues import JobState, JobView
from runs_app.models import RunnerJob, Status
from runs_app.models.runner_job import SPOOL
from runs_app.work import lifecycle

_SETTLING = timedelta(seconds=10)  # a job younger than this may be on its way between two states
MOST = 50
"""Forgotten jobs that `ingest_events` queues again at once: 600 take six seconds without events."""


def reconcile(*, now: datetime, listening_since: datetime, most: int | None = None) -> int:
    """Queue again what RQ has forgotten, and retry what has fallen silent; returns how many.

    Of what was forgotten it takes the `most` that wait longest; all without a number.

    Call it when every event that was sent has been recorded. `listening_since` is when that began
    to hold: silence before it proves nothing. Raises `RedisError` without Redis.
    """
    return _queue_forgotten(now, listening_since, most) + _retry_silent(now, listening_since)


def _queue_forgotten(now: datetime, listening_since: datetime, most: int | None) -> int:
    if now - listening_since < _SETTLING:
        return 0
    found = lifecycle.find(Q(status=Status.QUEUED, queued_at__lt=now - _SETTLING))
    waiting = sorted(found, key=lambda row: row.queued_at)
    devices = {row.device_id for row in waiting}
    known = {device: queues.waiting_jobs(device) for device in devices}
    missing = (row for row in waiting if queues.job_id(row) not in known[row.device_id])
    acted = (row for row in missing if _requeue(row, now, listening_since))
    return len(list(islice(acted, most)))


@transaction.atomic
def _requeue(seen: RunnerJob, now: datetime, listening_since: datetime) -> bool:
    """Act on one that is queued, if RQ does not have its job in the queue."""
    job = queues.look(seen)
    if job.state is JobState.WAITING:
        return False
    row = lifecycle.lock_in(seen, Status.QUEUED)
    if row is None or row.attempt != seen.attempt:
        return False
    if job.state is JobState.MISSING:
        lifecycle.queue_again(row, reason="its job was not in the queue", now=now)
        return True
    reason = _why_over(row, job, now, listening_since)
    if reason:
        lifecycle.retry_or_give_up(row, reason=reason, now=now)
    return bool(reason)


def _why_over(row: RunnerJob, job: JobView, now: datetime, listening_since: datetime) -> str:
    """Why a job that began will bring no event any more; empty while one may come."""
    if job.refusal:
        return (
            f"a runner of {row.device_id} refused it: {job.refusal}; a runner of an older version"
            " does not know everything that this site asks for: update it"
        )
    since = max(job.since or row.queued_at, listening_since)
    if now - since < timedelta(seconds=settings.SILENCE_S):
        return ""
    return f"its job {job.state.value} at a runner, but no event came for {settings.SILENCE_S} s"


def _retry_silent(now: datetime, listening_since: datetime) -> int:
    deadline = now - timedelta(seconds=settings.SILENCE_S)
    if listening_since > deadline:
        return 0
    silent = Q(last_event_at__lt=deadline) | Q(last_event_at__isnull=True, started_at__lt=deadline)
    handed_out = Q(runner_boot_id__startswith=SPOOL)
    found = lifecycle.find(silent & Q(status=Status.RUNNING) & ~handed_out)
    return sum(_retry(row, deadline, now) for row in found)


@transaction.atomic
def _retry(seen: RunnerJob, deadline: datetime, now: datetime) -> bool:
    row = lifecycle.lock_in(seen, Status.RUNNING)
    if row is None or (row.last_event_at or deadline) > deadline:
        return False
    runner = row.runner.name if row.runner else "its runner"
    reason = f"{runner} fell silent for more than {settings.SILENCE_S} s"
    lifecycle.retry_or_give_up(row, reason=reason, now=now)
    return True
