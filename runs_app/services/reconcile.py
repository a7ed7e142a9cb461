"""Find evaluations that nobody works on any more, and see to it that somebody does."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from runs_app import queues
from runs_app.models import Evaluation, Status
from runs_app.queues import JobState
from runs_app.services import lifecycle

_SETTLING = timedelta(seconds=10)  # a job younger than this may be on its way between two states


def reconcile(*, now: datetime, listening_since: datetime) -> int:
    """Queue again what RQ has forgotten, and retry what has fallen silent; returns how many.

    Call it when every event that was sent has been recorded. `listening_since` is when that began
    to hold: silence before it proves nothing. Raises `RedisError` without Redis.
    """
    return _queue_forgotten(now, listening_since) + _retry_silent(now, listening_since)


def _queue_forgotten(now: datetime, listening_since: datetime) -> int:
    if now - listening_since < _SETTLING:
        return 0
    waiting = list(
        Evaluation.objects.filter(status=Status.QUEUED, queued_at__lt=now - _SETTLING).order_by(
            "queued_at"
        )
    )
    devices = {evaluation.device_id for evaluation in waiting}
    known = {device: queues.waiting_jobs(device) for device in devices}
    return sum(
        _requeue(evaluation, now, listening_since)
        for evaluation in waiting
        if queues.job_id(evaluation) not in known[evaluation.device_id]
    )


@transaction.atomic
def _requeue(seen: Evaluation, now: datetime, listening_since: datetime) -> bool:
    """Act on one queued evaluation, if RQ does not have its job in the queue."""
    job = queues.look(seen)
    if job.state is JobState.WAITING:
        return False
    evaluation = lifecycle.lock_in(seen.pk, Status.QUEUED)
    if evaluation is None or evaluation.attempt != seen.attempt:
        return False
    if job.state is JobState.MISSING:
        reason = "its job was not in the queue"
        evaluation.queued_at = now
        evaluation.save(update_fields=["queued_at"])
        lifecycle.queue(evaluation, kind="requeued", reason=reason, now=now)
        return True
    since = max(job.since or evaluation.queued_at, listening_since)
    if now - since < timedelta(seconds=settings.SILENCE_S):
        return False
    reason = f"its job {job.state.value} at a runner, but no event came for {settings.SILENCE_S} s"
    lifecycle.retry_or_give_up(evaluation, reason=reason, now=now)
    return True


def _retry_silent(now: datetime, listening_since: datetime) -> int:
    deadline = now - timedelta(seconds=settings.SILENCE_S)
    if listening_since > deadline:
        return 0
    silent = Q(last_event_at__lt=deadline) | Q(last_event_at__isnull=True, started_at__lt=deadline)
    found = Evaluation.objects.filter(silent, status=Status.RUNNING).values_list("pk", flat=True)
    return sum(_retry(evaluation_id, deadline, now) for evaluation_id in found)


@transaction.atomic
def _retry(evaluation_id: object, deadline: datetime, now: datetime) -> bool:
    evaluation = lifecycle.lock_in(str(evaluation_id), Status.RUNNING)
    if evaluation is None or (evaluation.last_event_at or deadline) > deadline:
        return False
    runner = evaluation.runner.name if evaluation.runner else "its runner"
    reason = f"{runner} fell silent for more than {settings.SILENCE_S} s"
    lifecycle.retry_or_give_up(evaluation, reason=reason, now=now)
    return True
