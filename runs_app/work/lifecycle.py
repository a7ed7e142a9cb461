"""The life of what runners work at; whoever changes a job holds a lock on its row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from gpu_runner.data.event import JobKind
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.messaging import queues
from runs_app.models import (
    BaselineMeasurement,
    Device,
    Evaluation,
    RunnerJob,
    Status,
    Submission,
    TaskCheck,
)
from runs_app.models.runner_job import SPOOL
from runs_app.work import audit_state, journal, replaced
from runs_app.work.signals import evaluation_ended

MODELS: dict[JobKind, type[RunnerJob]] = {
    model.KIND: model for model in (Evaluation, TaskCheck, BaselineMeasurement)
}
"""Kind of job -> its model."""

J = TypeVar("J", bound=RunnerJob)


def find(condition: Q) -> list[RunnerJob]:
    """All jobs that are not over and fulfil a condition on the columns that all kinds have."""
    under_way = condition & Q(finished_at=None)  # evaluations that are over may be a million
    return [job for model in MODELS.values() for job in model._default_manager.filter(under_way)]


_LONGEST_LOG = 1 << 16  # characters, of an attempt that is tried again
_MOVING = ("status", "started_at", "stage", "runner", "runner_boot_id", "last_seq", "last_event_at")
"""Columns that change while a runner works."""
_OF_EVALUATIONS = (*_MOVING, "events_stored")


def _lockable(model: type[J]) -> QuerySet[J]:
    """Rows to be locked; of an evaluation also what its watchers are told, but no long texts."""
    rows = model._default_manager.select_for_update(of=("self",))
    if model is Evaluation:
        rows = rows.select_related("task_version", "submission")
        rows = rows.defer("task_version__document", "submission__source")
    return rows


def lock(model: type[J], job_id: UUID | str) -> J:
    """The job's row, locked until the transaction ends."""
    return _lockable(model).get(pk=job_id)


def lock_evaluations(ids: Collection[UUID]) -> dict[UUID, Evaluation]:
    """Those evaluations of these that there are, locked in the order of their keys."""
    rows = _lockable(Evaluation).filter(pk__in=ids).order_by("pk")
    return {row.pk: row for row in rows}


def lock_in(seen: J, status: Status) -> J | None:
    """The locked row if it has that status still, else None."""
    return _lockable(type(seen)).filter(pk=seen.pk, status=status).first()


def evaluate(
    *,
    submission: Submission,
    device: Device,
    mode: Mode,
    now: datetime,
    background: bool = False,
    must_beat_ns: Mapping[str, float] | None = None,
) -> Evaluation:
    """Queue a new evaluation of a submission; checks nothing.

    One in the background runs when nothing of people's waits for the device, audits first.
    must_beat_ns: times above which it is stopped, by public workload.
    """
    evaluation = Evaluation.objects.create(
        submission=submission,
        task_version=submission.task_version,
        direction=submission.direction,
        device=device,
        mode=mode.value,
        background=background,
        must_beat_ns=dict(must_beat_ns or {}),
        created_at=now,
        queued_at=now,
    )
    queue(evaluation, now=now)
    return evaluation


def queue(job: RunnerJob, *, kind: str = "queued", reason: str = "", now: datetime) -> None:
    """Send the current attempt to its device's queue, once the transaction is committed."""
    journal.write(job, kind, {"reason": reason}, now=now)
    transaction.on_commit(lambda: queues.enqueue(job))


def queue_again(job: RunnerJob, *, reason: str, now: datetime) -> None:
    """Send the same attempt to the queue that has lost it."""
    job.queued_at = now
    job.save(update_fields=["queued_at"])
    queue(job, kind="requeued", reason=reason, now=now)


def progress(
    job: RunnerJob, kind: str, payload: dict[str, Any], *, now: datetime, seq: int
) -> None:
    """A runner works at the job, says its event `seq`; the caller puts the rest on the row.

    Afterwards the caller saves it with `save_progress`, of several events once.
    """
    job.started_at = job.started_at or now
    job.status = Status.RUNNING
    journal.say(job, kind, payload, now=now, seq=seq)


def save_progress(job: RunnerJob) -> None:
    """Save what changes while a runner works."""
    job.save(update_fields=_OF_EVALUATIONS if isinstance(job, Evaluation) else _MOVING)


def retry_or_give_up(job: RunnerJob, *, reason: str, now: datetime, seq: int | None = None) -> None:
    """Begin the next attempt of a job that was lost, or end it without an outcome.

    `seq` is that of the runner's event, if it was a runner that said so.
    """
    lost = job.attempt
    journal.write(job, "lost", {"reason": reason}, now=now, seq=seq)
    transaction.on_commit(lambda: queues.drop(job, lost))
    if lost >= settings.MAX_ATTEMPTS:
        give_up(job, reason=f"lost {lost} times; the last time: {reason}", now=now)
        return
    _begin_again(job, reason=reason, now=now)


def try_again(job: RunnerJob, *, reason: str, log: str, now: datetime, seq: int) -> None:
    """Begin the next attempt after one that has ended by itself, and whose host was the cause.

    `log` is its runner's account, for admins.
    """
    payload = {"reason": reason} | ({"log": log[:_LONGEST_LOG]} if log else {})
    journal.write(job, "lost", payload, now=now, seq=seq)
    _begin_again(job, reason=f"measured again: {reason}", now=now)


def _begin_again(job: RunnerJob, *, reason: str, now: datetime) -> None:
    job.status = Status.QUEUED
    job.attempt, job.last_seq = job.attempt + 1, 0
    job.reason, job.stage = reason, ""
    job.runner, job.runner_boot_id = None, ""
    job.queued_at, job.started_at, job.last_event_at = now, None, None
    job.save()
    queue(job, kind="retried", reason=reason, now=now)


def hand_out(job: RunnerJob, *, spool: str, now: datetime) -> None:
    """Give a waiting job to a host that reaches no site; the caller has written it to the spool.

    Nobody hears of it until the spool comes back, so that its silence proves nothing.
    """
    job.status, job.started_at, job.last_event_at = Status.RUNNING, now, now
    job.runner, job.runner_boot_id = None, SPOOL + spool
    journal.say(job, "spooled", {"spool": spool}, now=now)
    job.save()
    transaction.on_commit(lambda: queues.drop(job, job.attempt))


def take_back(job: RunnerJob, *, now: datetime) -> None:
    """Queue a job that was handed out; what its spool brings for this attempt counts no more."""
    reason = "taken back from its spool"
    journal.write(job, "lost", {"reason": reason}, now=now)
    _begin_again(job, reason=reason, now=now)


def give_up(job: RunnerJob, *, reason: str, now: datetime) -> None:
    """End a job without an outcome; an evaluation's verdict is then ours, not the author's."""
    job.reason = reason
    payload = {"reason": reason}
    if isinstance(job, Evaluation):
        job.verdict = payload["verdict"] = Verdict.SYSTEM_ERROR.value
    end(job, Status.FINISHED, payload, now=now)


def cancel(job: RunnerJob, *, reason: str, now: datetime) -> None:
    """Take a job out of the queue, or stop it."""
    end(job, Status.CANCELLED, {"reason": reason}, now=now)
    transaction.on_commit(lambda: queues.drop(job, job.attempt))


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
    assert not job.is_over, f"{job.KIND} {job.pk} has ended before"
    job.status, job.finished_at, job.stage = status, now, ""
    if isinstance(job, Evaluation):
        audit_state.inherit(job)
    journal.say(job, status.lower(), payload, now=now, seq=seq)
    job.save()
    if isinstance(job, Evaluation):
        if job.mode == Mode.RANKED:
            replaced.settle([job.submission_id])
        _tell_who_waits(job, now)
        evaluation_ended.send(sender=Evaluation, evaluation=job)


def _tell_who_waits(evaluation: Evaluation, now: datetime) -> None:
    """Tell the board's audit, and the run, to which an evaluation that has ended belongs."""
    if evaluation.mode == Mode.AUDIT and evaluation.verdict in ("", Verdict.SYSTEM_ERROR):
        reason = evaluation.reason or "it was cancelled"
        audit_state.inconclusive(evaluation, reason, now=now)
    run_id = evaluation.submission.run_id
    if run_id is not None:
        transaction.on_commit(lambda: queues.enqueue_advance(run_id))
