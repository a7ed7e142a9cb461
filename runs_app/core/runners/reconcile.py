"""Find jobs that no runner works on any more, and see to it that one does."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from itertools import islice

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from runs_app.core.messaging import orders
from runs_app.core.work import lifecycle
from runs_app.models import RunnerJob, RunnerToken, Status
from runs_app.models.runner_job import SPOOL

_SETTLING = timedelta(seconds=10)  # a job younger than this may be on its way between two states
_OVERTIME = timedelta(minutes=2)  # chosen: a runner ends a job that takes too long, and says so
_FORGETTING = timedelta(seconds=30)
"""So long a runner may leave out a job: an answer that got lost is fetched again well before."""
MOST = 50
"""Forgotten jobs that `ingest_events` queues again at once: 600 take six seconds without events."""


def reconcile(
    *,
    now: datetime,
    listening_since: datetime,
    unheard: Collection[RunnerToken] = (),
    most: int | None = None,
) -> int:
    """Queue again what RQ has forgotten, and retry what no runner works at; returns how many.

    Of what was forgotten it takes the `most` that wait longest; all without a number.

    Call it when every event that was sent has been recorded, except of those `unheard`.
    `listening_since` is when that began to hold: silence before it proves nothing. Raises
    `RedisError` without Redis.
    """
    forgotten = _queue_forgotten(now, listening_since, most)
    return forgotten + _retry_lost(now, listening_since, unheard)


def _queue_forgotten(now: datetime, listening_since: datetime, most: int | None) -> int:
    if now - listening_since < _SETTLING:
        return 0
    found = lifecycle.find(Q(status=Status.QUEUED, queued_at__lt=now - _SETTLING))
    waiting = sorted(found, key=lambda row: row.queued_at)
    devices = {row.device_id for row in waiting}
    known = {device: orders.waiting(device) for device in devices}
    missing = (row for row in waiting if str(orders.name_of(row)) not in known[row.device_id])
    acted = (row for row in missing if _requeue(row, now))
    return len(list(islice(acted, most)))


@transaction.atomic
def _requeue(seen: RunnerJob, now: datetime) -> bool:
    row = lifecycle.lock_again(seen)
    if row is None:
        return False
    lifecycle.requeue(row, reason="its job was not in the queue", now=now)
    return True


def _retry_lost(now: datetime, listening_since: datetime, unheard: Collection[RunnerToken]) -> int:
    listened = now - listening_since
    handed_out = Q(runner_boot_id__startswith=SPOOL)
    found = lifecycle.find(Q(status=Status.RUNNING) & ~handed_out)
    deaf = {token.pk for token in unheard}
    return sum(_retry(row, now, listened, deaf) for row in found)


@transaction.atomic
def _retry(seen: RunnerJob, now: datetime, listened: timedelta, deaf: Collection[int]) -> bool:
    if not _why_lost(seen, now, listened, deaf):
        return False
    row = lifecycle.lock_again(seen)
    reason = _why_lost(row, now, listened, deaf) if row else ""
    if row is None or not reason:
        return False
    lifecycle.retry_or_give_up(row, reason=reason, now=now)
    return True


def _why_lost(job: RunnerJob, now: datetime, listened: timedelta, deaf: Collection[int]) -> str:
    """Why nobody works at a job, or empty: its silence is long, or its runner leaves it out.

    Of a runner that is not heard yet, only a job that takes too long is lost.
    """
    runner, heard_at = job.runner, job.last_event_at or job.started_at or now
    name = runner.name if runner else "its runner"
    longest = timedelta(seconds=settings.JOB_TIMEOUT_S)
    if now - (job.started_at or now) > longest + _OVERTIME:
        return f"{name} worked on it for longer than {settings.JOB_TIMEOUT_S} s"
    if runner is not None and runner.token_id in deaf:
        return ""
    if min(now - heard_at, listened) > timedelta(seconds=settings.SILENCE_S):
        return f"{name} was silent for more than {settings.SILENCE_S} s"
    if runner is None or str(orders.name_of(job)) in runner.current:
        return ""
    is_long = min(runner.seen_at - heard_at, listened) > _FORGETTING
    return f"runner {name} is no longer working on it" if is_long else ""
