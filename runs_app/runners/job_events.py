"""Record what runners report of jobs about task versions; the same event twice changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event, EventKind
from runs_app.baselines import services as baselines
from runs_app.checks import services as checks
from runs_app.errors import EventError
from runs_app.messaging import broadcast
from runs_app.messaging.queues import Job
from runs_app.models import Runner, Status, TaskCheck
from runs_app.text import storable
from runs_app.work import job_lifecycle

_LONGEST_TEXT = 10_000  # characters that are stored of a runner's words


def record(event: Event, now: datetime) -> bool:
    """Store one event of a job; False if it was known before, or came too late to matter.

    Raises `EventError` for an event that cannot be true. Call it in a transaction.
    """
    job = job_lifecycle.lock(event.evaluation_id)
    if job is None:
        raise EventError(f"there is no evaluation or other job {event.evaluation_id!r}")
    if event.attempt > job.attempt:
        raise EventError(f"attempt {event.attempt} has not begun")
    late = event.attempt != job.attempt or job.is_over
    if late or event.seq <= job.last_seq:
        return False
    job.last_seq, job.last_event_at = event.seq, now
    _HANDLERS[event.kind](job, storable(event.payload), now)
    return True


def _alive(job: Job, payload: dict[str, Any], now: datetime) -> None:
    job.save(update_fields=["last_seq", "last_event_at"])


def _started(job: Job, payload: dict[str, Any], now: datetime) -> None:
    job.runner = Runner.objects.filter(name=payload.get("runner", "")).first()
    job.runner_boot_id = job.runner.boot_id if job.runner else ""
    _run(job, now)


def _stage(job: Job, payload: dict[str, Any], now: datetime) -> None:
    job.stage = str(payload.get("detail", ""))[:_LONGEST_TEXT]
    _run(job, now)


def _run(job: Job, now: datetime) -> None:
    began = job.status != Status.RUNNING
    job.started_at = job.started_at or now
    job.status = Status.RUNNING
    job.save()
    if began:
        broadcast.send_job(job)


def _finished(job: Job, payload: dict[str, Any], now: datetime) -> None:
    document = payload.get("report")
    if document is None:
        reason = str(payload.get("reason") or "its runner gave neither a report nor a reason")
        job_lifecycle.end(job, reason=reason[:_LONGEST_TEXT], now=now)
        return
    try:
        if isinstance(job, TaskCheck):
            checks.finish(job, codec.encode(document), now)
        else:
            baselines.finish(job, codec.encode(document), now)
    except DataError as error:
        reason = f"the report of its runner cannot be used: {error}"[:_LONGEST_TEXT]
        job_lifecycle.end(job, reason=reason, now=now)


def _lost(job: Job, payload: dict[str, Any], now: datetime) -> None:
    reason = str(payload.get("reason") or "the runner lost it")[:_LONGEST_TEXT]
    job_lifecycle.retry_or_give_up(job, reason=reason, now=now)


_HANDLERS: dict[EventKind, Callable[[Job, dict[str, Any], datetime], None]] = {
    EventKind.ALIVE: _alive,
    EventKind.STARTED: _started,
    EventKind.STAGE: _stage,
    EventKind.FINISHED: _finished,
    EventKind.LOST: _lost,
}
