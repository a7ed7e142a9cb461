"""Record the events that runners report; the same event twice changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils.module_loading import import_string

from gpu_runner.data import codec
from gpu_runner.data.event import ENDS, Event, EventKind, RunnerState
from runs_app.core.errors import EventError, Implausible
from runs_app.core.messaging import orders
from runs_app.core.runners.heartbeats import record_runner
from runs_app.core.text import printable, storable
from runs_app.core.work import journal, lifecycle, noise
from runs_app.core.work.admins import flag
from runs_app.models import JOBS, Evaluation, RunnerJob, RunnerToken
from runs_app.models.runner_job import LONGEST_TEXT, SPOOL

_PROGRESS = (EventKind.ALIVE, EventKind.STARTED, EventKind.STAGE)
"""Kinds of event after which a job goes on: its row is saved once for all of them."""


@dataclass(frozen=True, kw_only=True)
class Sender:
    """Whose word an event is: that of a runner's token, or of the spool that it came in."""

    token: RunnerToken | None = None
    spool: str = ""

    def holds(self, job: RunnerJob) -> bool:
        """Whether the current attempt was handed to it."""
        if self.token is None:
            return job.runner_boot_id == SPOOL + self.spool
        return job.runner is not None and job.runner.token_id == self.token.pk

    def __str__(self) -> str:
        return f"runner {self.token}" if self.token else f"spool {self.spool}"


Said = tuple[Sender, Event]


@transaction.atomic
def record_event(*, event: Event, sender: Sender, now: datetime) -> bool:
    """Store one event and what follows from it; False if it changes nothing.

    A fact counts if its sender holds the job's current attempt, before its end, and if it is newer
    than all that counted before. Raises `EventError` or `DataError` for an event that cannot be
    true; nothing is stored then.
    """
    batch = _Batch(now, [event])
    counted = batch.record(sender, event)
    batch.save()
    return counted


@transaction.atomic
def record_events(*, events: Sequence[Said], now: datetime) -> None:
    """Store many in their order, in one transaction; raises as `record_event`, for all of them."""
    with journal.together(), noise.held():
        done = 0
        while done < len(events):
            batch = _Batch(now, [event for _, event in events[done:]])
            while done < len(events) and not batch.outdated:
                batch.record(*events[done])
                done += 1
            batch.save()


def refuse(*, event: Event, sender: Sender, error: Exception, now: datetime) -> None:
    """See to what follows from an event that could not be recorded.

    Admins learn of a sender in doubt. A job whose outcome was refused is tried again: nothing else
    will come of this attempt.
    """
    why = printable(str(error)[:LONGEST_TEXT])
    job = _try_again(event, sender, why, now) if event.kind in ENDS else None
    if isinstance(error, Implausible) and sender.token is not None:
        evaluation = Evaluation.objects.filter(pk=job.pk).first() if job is not None else None
        flag(sender.token, why, now=now, evaluation=evaluation)


@transaction.atomic
def _try_again(event: Event, sender: Sender, why: str, now: datetime) -> RunnerJob | None:
    job = _Batch(now, [event]).locked.get(_identity(event))
    if job is None or job.is_over or job.attempt != event.attempt or not sender.holds(job):
        return None
    reason = f"a report from {sender} was refused: {why}"[:LONGEST_TEXT]
    lifecycle.retry_or_give_up(job, reason=reason, now=now)
    return job


class _Batch:
    """Rows that are locked together, and of whose progress each is saved once.

    It is `outdated` once other rows may have changed that it holds: then all are to be read again.
    """

    def __init__(self, now: datetime, events: Sequence[Event]) -> None:
        """Lock the jobs of these events."""
        self.now = now
        self.locked: dict[UUID | None, RunnerJob] = {}
        for kind, model in JOBS.items():
            ids = {_identity(event) for event in events if event.job == kind}
            self.locked |= lifecycle.lock_all(model, ids)
        self.moved: dict[UUID, RunnerJob] = {}
        self.outdated = False

    def record(self, sender: Sender, event: Event) -> bool:
        """Apply an event; False if it changes nothing."""
        if event.kind is EventKind.RUNNER:
            self.outdated = True
            self.save()
            return _heartbeat(sender, storable(event.payload), self.now)
        job = self._locked(event)
        if event.attempt > job.attempt:
            raise EventError(f"attempt {event.attempt} of {job.pk} hasn't started yet")
        if event.attempt != job.attempt or job.is_over:
            return False
        if not sender.holds(job):
            raise EventError(f"{sender} isn't working on {orders.name_of(job)}")
        if event.seq <= job.last_seq:
            return False
        job.last_seq, job.last_event_at = event.seq, self.now
        if event.kind in _PROGRESS:
            self.moved[job.pk] = job
        else:
            self.moved.pop(job.pk, None)  # its end saves all of it
            self.outdated = job.changes_others
            if self.outdated:
                self.save()
        kind = EventKind.ALIVE if job.is_full and event.kind in _PROGRESS else event.kind
        _HANDLERS[kind](job, event.seq, storable(event.payload), self.now)
        return True

    def save(self) -> None:
        """Save the rows on which runners have worked."""
        for job in self.moved.values():
            lifecycle.save_progress(job)
        self.moved.clear()

    def _locked(self, event: Event) -> RunnerJob:
        """The locked row of the event's job, the same for all events of the batch."""
        identity = _identity(event)
        if event.job is None or identity is None:
            raise EventError(f"{event.job_id!r} is not a job")
        job = self.locked.get(identity)
        if job is None or event.job != job.KIND:
            raise EventError(f"there is no {event.job} {event.job_id!r}")
        return job


def _heartbeat(sender: Sender, payload: dict[str, object], now: datetime) -> bool:
    if sender.token is None:
        raise EventError(f"{sender} can't send a heartbeat")
    return record_runner(state=codec.decode(RunnerState, payload), token=sender.token, now=now)


def _identity(event: Event) -> UUID | None:
    try:
        return UUID(event.job_id)
    except ValueError:
        return None


def _alive(job: RunnerJob, seq: int, payload: dict[str, object], now: datetime) -> None:
    """Nothing but that it is alive."""


def _started(job: RunnerJob, seq: int, payload: dict[str, object], now: datetime) -> None:
    if job.runner is not None:
        payload["runner"] = job.runner.name
    lifecycle.progress(job, EventKind.STARTED.value, payload, now=now, seq=seq)


def _stage(job: RunnerJob, seq: int, payload: dict[str, object], now: datetime) -> None:
    try:
        job.take_stage(payload)
    except ValueError:
        raise EventError(f"{payload.get('stage')!r} is not a stage") from None
    lifecycle.progress(job, EventKind.STAGE.value, payload, now=now, seq=seq)


def _finished(job: RunnerJob, seq: int, payload: dict[str, object], now: datetime) -> None:
    import_string(job.FINISH)(job, payload, now, seq)


def _lost(job: RunnerJob, seq: int, payload: dict[str, object], now: datetime) -> None:
    reason = str(payload.get("reason") or "the runner lost it")[:LONGEST_TEXT]
    lifecycle.retry_or_give_up(job, reason=reason, now=now, seq=seq)


_HANDLERS: dict[EventKind, Callable[[RunnerJob, int, dict[str, object], datetime], None]] = {
    EventKind.ALIVE: _alive,
    EventKind.STARTED: _started,
    EventKind.STAGE: _stage,
    EventKind.FINISHED: _finished,
    EventKind.LOST: _lost,
}
