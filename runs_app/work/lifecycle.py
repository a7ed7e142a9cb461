"""Changes of an evaluation's status; the caller holds a lock on the row."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.messaging import queues
from runs_app.models import Device, Evaluation, Status, Submission
from runs_app.work import audit_state, journal


def lock(evaluation_id: UUID | str) -> Evaluation:
    """The evaluation's row, locked until the transaction ends."""
    return Evaluation.objects.select_for_update(of=("self",)).get(pk=evaluation_id)


def evaluate(
    *,
    submission: Submission,
    device: Device,
    mode: Mode,
    now: datetime,
    background: bool = False,
) -> Evaluation:
    """Queue a new evaluation of a submission; checks nothing.

    One in the background runs when nothing of people's waits for the device, audits first.
    """
    evaluation = Evaluation.objects.create(
        submission=submission,
        task_version=submission.task_version,
        direction=submission.direction,
        device=device,
        mode=mode.value,
        background=background,
        created_at=now,
        queued_at=now,
    )
    queue(evaluation, kind="queued", reason="", now=now)
    return evaluation


def queue(evaluation: Evaluation, *, kind: str, reason: str, now: datetime) -> None:
    """Send the current attempt to its device's queue, once the transaction is committed."""
    journal.write(evaluation, kind, {"reason": reason}, now=now)
    transaction.on_commit(lambda: queues.enqueue(evaluation))


def retry_or_give_up(
    evaluation: Evaluation, *, reason: str, now: datetime, seq: int | None = None
) -> None:
    """Begin the next attempt of an evaluation that was lost, or end it as SYSTEM_ERROR.

    `seq` is that of the runner's event, if it was a runner that said so.
    """
    lost = evaluation.attempt
    journal.write(evaluation, "lost", {"reason": reason}, now=now, seq=seq)
    transaction.on_commit(lambda: queues.drop(evaluation, lost))
    if lost >= settings.MAX_ATTEMPTS:
        give_up(evaluation, reason=f"lost {lost} times; the last time: {reason}", now=now)
        return
    _begin_again(evaluation, reason=reason, now=now)


def try_again(evaluation: Evaluation, *, reason: str, now: datetime, seq: int) -> None:
    """Begin the next attempt after one that has ended by itself, and whose host was the cause."""
    journal.write(evaluation, "lost", {"reason": reason}, now=now, seq=seq)
    _begin_again(evaluation, reason=f"measured again: {reason}", now=now)


def _begin_again(evaluation: Evaluation, *, reason: str, now: datetime) -> None:
    evaluation.status = Status.QUEUED
    evaluation.attempt += 1
    evaluation.reason = reason
    evaluation.stage = ""
    evaluation.runner, evaluation.runner_boot_id = None, ""
    evaluation.queued_at, evaluation.started_at, evaluation.last_event_at = now, None, None
    evaluation.save()
    queue(evaluation, kind="retried", reason=reason, now=now)


def give_up(evaluation: Evaluation, *, reason: str, now: datetime) -> None:
    """End an evaluation with a verdict that is ours, not the author's."""
    evaluation.verdict = Verdict.SYSTEM_ERROR.value
    evaluation.reason = reason
    end(evaluation, Status.FINISHED, now=now)
    payload = {"verdict": evaluation.verdict, "reason": reason}
    journal.write(evaluation, "finished", payload, now=now)


def end(evaluation: Evaluation, status: Status, *, now: datetime) -> None:
    """Store a final status, and the outcome that the caller has put on the row."""
    assert not evaluation.is_over, f"evaluation {evaluation.pk} has ended before"
    evaluation.status = status
    evaluation.finished_at = now
    audit_state.inherit(evaluation)
    evaluation.save()
    if evaluation.mode == Mode.AUDIT and evaluation.verdict in ("", Verdict.SYSTEM_ERROR):
        reason = evaluation.reason or "it was cancelled"
        audit_state.inconclusive(evaluation, reason, now=now)
    run_id = evaluation.submission.run_id
    if run_id is not None:
        transaction.on_commit(lambda: queues.enqueue_advance(run_id))
