"""Record the events that runners report; the same event twice changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event, EventKind, JobKind, RunnerState
from gpu_runner.data.verdict import Mode, Stage
from runs_app.baselines import services as baselines
from runs_app.checks import services as checks
from runs_app.errors import EventError
from runs_app.models import BaselineMeasurement, Evaluation, Runner, RunnerJob, TaskCheck
from runs_app.runners import results
from runs_app.runners.heartbeats import record_runner
from runs_app.text import storable
from runs_app.work import journal, lifecycle

_LONGEST_TEXT = 10_000  # characters that are stored of a runner's words


_PROGRESS = (EventKind.ALIVE, EventKind.STARTED, EventKind.STAGE)
"""Kinds of event after which a job goes on: its row is saved once for all of them."""
_OF_BOARDS = (Mode.RANKED, Mode.AUDIT)
"""Modes of evaluations whose ends change others: replaced ones, and what audits say of them."""


@transaction.atomic
def record_event(*, event: Event, now: datetime) -> bool:
    """Store one event and what follows from it; False if it was known before.

    A fact counts if it is of the job's current attempt, before its end, and newer than all that
    counted before. Others change nothing; an evaluation keeps them. Raises `EventError` or
    `DataError` for an event that cannot be true; nothing is stored then.
    """
    batch = _Batch(now)
    counted = batch.record(event)
    batch.save()
    return counted


@transaction.atomic
def record_events(*, events: Sequence[Event], now: datetime) -> None:
    """Store many in their order, in one transaction; raises as `record_event`, for all of them."""
    with journal.together():
        done = 0
        while done < len(events):
            batch = _Batch(now, events[done:])
            while done < len(events) and not batch.outdated:
                batch.record(events[done])
                done += 1
            batch.save()


class _Batch:
    """Rows that are locked together, and of whose progress each is saved once.

    It is `outdated` once other rows may have changed that it holds: then all are to be read again.
    """

    def __init__(self, now: datetime, events: Sequence[Event] = ()) -> None:
        """Lock the evaluations of these events."""
        self.now = now
        ids = {_identity(event) for event in events if event.job is JobKind.EVALUATION}
        known = [found for found in ids if found is not None]
        self.locked: dict[UUID, RunnerJob] = dict(lifecycle.lock_evaluations(known))
        self.moved: dict[UUID, RunnerJob] = {}
        self.outdated = False

    def record(self, event: Event) -> bool:
        """Apply an event; False if it changes nothing."""
        payload = storable(event.payload)
        if event.kind is EventKind.RUNNER:
            self.outdated = True
            self.save()
            return record_runner(state=codec.decode(RunnerState, payload), now=self.now)
        job = self._locked(event)
        if event.attempt > job.attempt:
            raise EventError(f"attempt {event.attempt} has not begun")
        if event.attempt != job.attempt or job.is_over or event.seq <= job.last_seq:
            self.save()
            return journal.keep_late(job, event, payload, self.now)
        job.last_seq, job.last_event_at = event.seq, self.now
        if event.kind in _PROGRESS:
            self.moved[job.pk] = job
        else:
            self.moved.pop(job.pk, None)  # its end saves all of it
            self.outdated = not isinstance(job, Evaluation) or job.mode in _OF_BOARDS
            if self.outdated:
                self.save()
        _HANDLERS[event.kind](job, event.seq, payload, self.now)
        return True

    def save(self) -> None:
        """Save the rows on which runners have worked."""
        for job in self.moved.values():
            lifecycle.save_progress(job)
        self.moved.clear()

    def _locked(self, event: Event) -> RunnerJob:
        """The locked row of the event's job, one of it for all events of the batch.

        A second one would not know what the first has not saved yet. An earlier runner does not
        say its kind.
        """
        kinds = [event.job] if event.job else list(lifecycle.MODELS)
        identity = _identity(event)
        known = self.locked.get(identity) if identity is not None else None
        if known is not None and known.KIND in kinds:
            return known
        for kind in kinds:
            try:
                job = lifecycle.lock(lifecycle.MODELS[kind], event.job_id)
            except (ObjectDoesNotExist, ValidationError, ValueError):
                continue
            self.locked[job.pk] = job
            return job
        raise EventError(f"there is no {event.job or 'job'} {event.job_id!r}")


def _identity(event: Event) -> UUID | None:
    try:
        return UUID(event.job_id)
    except ValueError:
        return None


def _alive(job: RunnerJob, seq: int, payload: dict[str, Any], now: datetime) -> None:
    """Nothing but that it is alive."""


def _started(job: RunnerJob, seq: int, payload: dict[str, Any], now: datetime) -> None:
    job.runner = Runner.objects.filter(name=payload.get("runner", "")).first()
    job.runner_boot_id = job.runner.boot_id if job.runner else ""
    lifecycle.progress(job, EventKind.STARTED.value, payload, now=now, seq=seq)


def _stage(job: RunnerJob, seq: int, payload: dict[str, Any], now: datetime) -> None:
    if isinstance(job, Evaluation):
        try:
            job.stage = Stage(str(payload.get("stage"))).value
        except ValueError:
            raise EventError(f"{payload.get('stage')!r} is no stage") from None
    else:
        job.stage = str(payload.get("detail", ""))[:_LONGEST_TEXT]
    lifecycle.progress(job, EventKind.STAGE.value, payload, now=now, seq=seq)


def _finished(job: RunnerJob, seq: int, payload: dict[str, Any], now: datetime) -> None:
    if isinstance(job, Evaluation):
        results.finish(job, payload.get("result"), now, seq)
        return
    report = payload.get("report")
    if report is None:
        reason = str(payload.get("reason") or "its runner gave neither a report nor a reason")
        lifecycle.give_up(job, reason=reason[:_LONGEST_TEXT], now=now)
        return
    try:
        if isinstance(job, TaskCheck):
            checks.finish(job, codec.encode(report), now)
        elif isinstance(job, BaselineMeasurement):
            baselines.finish(job, codec.encode(report), now)
    except DataError as error:
        reason = f"the report of its runner cannot be used: {error}"[:_LONGEST_TEXT]
        lifecycle.give_up(job, reason=reason, now=now)


def _lost(job: RunnerJob, seq: int, payload: dict[str, Any], now: datetime) -> None:
    reason = str(payload.get("reason") or "the runner lost it")[:_LONGEST_TEXT]
    lifecycle.retry_or_give_up(job, reason=reason, now=now, seq=seq)


_HANDLERS: dict[EventKind, Callable[[RunnerJob, int, dict[str, Any], datetime], None]] = {
    EventKind.ALIVE: _alive,
    EventKind.STARTED: _started,
    EventKind.STAGE: _stage,
    EventKind.FINISHED: _finished,
    EventKind.LOST: _lost,
}
