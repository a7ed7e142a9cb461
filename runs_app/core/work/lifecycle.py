"""The life of what runners work at; whoever changes a job holds a lock on its row."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.module_loading import import_string

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode
from runs_app.core.messaging import orders
from runs_app.core.work import journal
from runs_app.models import JOBS, Device, Evaluation, Runner, RunnerJob, Status, Submission
from runs_app.models.runner_job import LONGEST_TEXT, SPOOL

J = TypeVar("J", bound=RunnerJob)


def find(condition: Q) -> list[RunnerJob]:
    """All jobs that are not over and fulfil a condition on the columns that all kinds have."""
    under_way = condition & Q(finished_at=None)  # evaluations that are over may be a million
    return [job for model in JOBS.values() for job in model._default_manager.filter(under_way)]


_LONGEST_LOG = 1 << 16  # characters, of an attempt that is tried again


def lockable(model: type[J]) -> QuerySet[J]:
    """Rows to be locked, with what whoever locks one needs of others, but no long texts."""
    rows = model._default_manager.select_for_update(of=("self",))
    return rows.select_related(*model.LOCKED_WITH).defer(*model.LOCKED_WITHOUT)


def lock(model: type[J], job_id: UUID | str) -> J:
    """The job's row, locked until the transaction ends."""
    return lockable(model).get(pk=job_id)


def lock_all(model: type[J], ids: Collection[UUID | None]) -> dict[UUID | None, J]:
    """Those jobs of these that there are, locked in the order of their keys."""
    rows = lockable(model).filter(pk__in=ids).order_by("pk")
    return {row.pk: row for row in rows}


def lock_again(seen: J) -> J | None:
    """The locked row, or None if its status or attempt is another by now."""
    same = lockable(type(seen)).filter(pk=seen.pk, status=seen.status, attempt=seen.attempt)
    return same.first()


def evaluate(
    *,
    submission: Submission,
    device: Device,
    mode: Mode,
    now: datetime,
    urgency: Urgency | None = None,
    must_beat_ns: Mapping[str, float] | None = None,
) -> Evaluation:
    """Queue a new evaluation of a submission; checks nothing.

    Without an urgency, its run waits for it or else a person.
    must_beat_ns: times above which it is stopped, by listed workload.
    """
    if urgency is None:
        of_people = Urgency.BUILDS if mode is Mode.COMPILE else Urgency.PEOPLE
        urgency = Urgency.RUNS if submission.origin == Submission.Origin.RUN else of_people
    evaluation = Evaluation(
        submission=submission,
        task_version=submission.task_version,
        direction=submission.direction,
        device=device,
        mode=mode.value,
        queue_place=urgency.place,
        must_beat_ns=dict(must_beat_ns or {}),
        created_at=now,
        queued_at=now,
    )
    queue(evaluation, now=now)
    return evaluation


def queue(job: RunnerJob, *, kind: str = "queued", reason: str = "", now: datetime) -> None:
    """Save a job, and send its current attempt to its device's queue after the commit."""
    with transaction.atomic(savepoint=False):  # an event may come before its job, but not alone
        journal.tell(job, kind, {"reason": reason}, now=now)
        job.save()
        transaction.on_commit(lambda: orders.enqueue(job))


def requeue(job: RunnerJob, *, reason: str, now: datetime) -> None:
    """Send the same attempt to the queue that has lost it."""
    job.queued_at = now
    queue(job, kind="requeued", reason=reason, now=now)


def progress(
    job: RunnerJob, kind: str, payload: dict[str, object], *, now: datetime, seq: int
) -> None:
    """A runner works at the job, says its event `seq`; the caller puts the rest on the row.

    Afterwards the caller saves it with `save_progress`, of several events once.
    """
    job.started_at = job.started_at or now
    job.status = Status.RUNNING
    journal.tell(job, kind, payload, now=now, seq=seq)


def save_progress(job: RunnerJob) -> None:
    """Save what changes while a runner works."""
    job.save(update_fields=job.MOVING)


def retry_or_give_up(job: RunnerJob, *, reason: str, now: datetime, seq: int | None = None) -> None:
    """Begin the next attempt of a job that was lost, or end it without an outcome.

    `seq` is that of the runner's event, if it was a runner that said so.
    """
    lost = job.attempt
    journal.tell(job, "lost", {"reason": reason}, now=now, seq=seq)
    _withdraw(job)
    if lost >= settings.MAX_ATTEMPTS:
        give_up(job, reason=f"lost {lost} times, most recently because: {reason}", now=now)
        return
    _next_attempt(job, reason=reason, now=now)


def lose(condition: Q, *, reason: str, now: datetime) -> int:
    """Retry the running jobs that fulfil a condition; how many these are."""
    count = 0
    for seen in find(condition & Q(status=Status.RUNNING)):
        if (job := lock_again(seen)) is not None:  # one by one: the end of one may change another
            retry_or_give_up(job, reason=reason, now=now)
            count += 1
    return count


def retry_after_result(job: RunnerJob, *, reason: str, log: str, now: datetime, seq: int) -> None:
    """Begin the next attempt after one that has ended by itself, and whose host was the cause.

    `log` is its runner's account, for admins.
    """
    payload = {"reason": reason} | ({"log": log[:_LONGEST_LOG]} if log else {})
    journal.tell(job, "lost", payload, now=now, seq=seq)
    _next_attempt(job, reason=f"measured again: {reason}", now=now)


def _withdraw(job: RunnerJob) -> None:
    """Nobody is to work at the current attempt any more, once the transaction is committed."""
    attempt, runner = job.attempt, job.runner
    transaction.on_commit(lambda: orders.drop(job, attempt))
    if runner is not None:
        transaction.on_commit(lambda: orders.tell(runner))


def _next_attempt(job: RunnerJob, *, reason: str, now: datetime) -> None:
    job.status = Status.QUEUED
    job.attempt, job.last_seq = job.attempt + 1, 0
    job.reason, job.stage = reason, ""
    job.lost_by = job.runner.token if job.runner is not None else None
    job.runner, job.runner_boot_id, job.ticket = None, "", ""
    job.queued_at, job.started_at, job.last_event_at = now, None, None
    queue(job, kind="retried", reason=reason, now=now)


def give_to_runner(job: RunnerJob, *, runner: Runner, ticket: str, now: datetime) -> None:
    """Give a waiting job to a runner: from now on that one alone is believed about it."""
    job.give_to(runner, ticket)
    _begins(job, now)


def give_to_spool(job: RunnerJob, *, spool: str, now: datetime) -> None:
    """Give a waiting job to a host that reaches no site; the caller has written it to the spool.

    Nobody hears of it until the spool comes back, so that its silence proves nothing.
    """
    job.runner, job.runner_boot_id = None, SPOOL + spool
    journal.tell(job, "spooled", {"spool": spool}, now=now)
    _begins(job, now)


def _begins(job: RunnerJob, now: datetime) -> None:
    job.status, job.started_at, job.last_event_at = Status.RUNNING, now, now
    job.save()
    transaction.on_commit(lambda: orders.drop(job, job.attempt))


def take_from_spool(job: RunnerJob, *, now: datetime) -> None:
    """Queue a job that was handed out; what its spool brings for this attempt counts no more."""
    reason = "taken back from its spool"
    journal.tell(job, "lost", {"reason": reason}, now=now)
    _next_attempt(job, reason=reason, now=now)


def give_up(job: RunnerJob, *, reason: str, now: datetime) -> None:
    """End a job without an outcome; an evaluation's verdict is then ours, not the author's."""
    job.reason = reason
    end(job, Status.FINISHED, {"reason": reason, **job.fail()}, now=now)


def cancel(job: RunnerJob, *, reason: str, now: datetime) -> None:
    """Take a job out of the queue, or stop it."""
    end(job, Status.CANCELLED, {"reason": reason}, now=now)
    _withdraw(job)


def end(
    job: RunnerJob,
    status: Status,
    payload: dict[str, Any],
    *,
    now: datetime,
    seq: int | None = None,
) -> None:
    """Store a final status, and the outcome that the caller has put on the row.

    `payload` is what an evaluation's watchers are told; `seq` as in `retry_or_give_up`.
    """
    assert not job.is_over, f"{job.KIND} {job.pk} has already ended"
    job.status, job.finished_at, job.stage = status, now, ""
    journal.tell(job, status.lower(), payload, now=now, seq=seq)
    job.save()
    if job.ENDED:
        import_string(job.ENDED)(job, now)


def by_report(
    take: Callable[[J, object, datetime], None],
) -> Callable[[J, Mapping[str, object], datetime, int], None]:
    """The `finish` of a kind of job whose runner sends a report, or why there is none.

    `take` ends the job with the report, and raises `DataError` for one that cannot be used.
    """

    @functools.wraps(take)
    def finish(job: J, payload: Mapping[str, object], now: datetime, seq: int) -> None:
        reason = str(payload.get("reason") or "its runner sent neither a report nor a reason")
        if payload.get("report") is not None:
            try:
                return take(job, codec.encode(payload["report"]), now)
            except DataError as error:
                reason = f"its runner's report cannot be used: {error}"
        give_up(job, reason=reason[:LONGEST_TEXT], now=now)

    return finish
