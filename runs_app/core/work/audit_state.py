"""Which audit counts for a submission's place on a device's board, and changes of its state."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from gpu_runner.data.verdict import Mode
from runs_app.core.work import journal, noise
from runs_app.models import Audited, BoardAudit, Device, Evaluation, Submission


def change(audit: BoardAudit, state: Audited, reason: str, *, now: datetime) -> None:
    """Store a state, and repeat it on the ranked evaluations of the pair.

    An audit that refuses a source, or no longer does, decides over every entry of that source.
    """
    was = audit.state
    audit.state, audit.reason, audit.changed_at = state, reason, now
    audit.save()
    _repeat(audit.submission, audit.device, now)
    if Audited.FAILED in (was, state):
        for entry in of_the_same_source(audit.submission):
            _repeat(entry, audit.device, now)


def _repeat(submission: Submission, device: Device, now: datetime) -> None:
    """Give the ranked evaluations of a submission the state that counts, and say so."""
    audit = board_audit(submission, device.pk)
    state, reason = (audit.state, audit.reason) if audit else (Audited.NONE.value, "")
    rows = Evaluation.objects.filter(submission=submission, device=device, mode=Mode.RANKED.value)
    rows.update(audited=state)
    if (last := rows.select_related("submission").order_by("-created_at").first()) is not None:
        noise.pool(last)
    latest = rows.select_for_update(of=("self",)).order_by("-created_at").first()
    if latest is not None:  # tell those who look at it
        payload = {"state": str(state), "reason": reason}
        journal.tell_and_save(latest, "audited", payload, now=now)


def inherit(evaluation: Evaluation) -> None:
    """Give a ranked evaluation the state that counts for it."""
    audit = board_audit(evaluation.submission, evaluation.device_id)
    if audit is not None:
        evaluation.audited = audit.state
        evaluation.save(update_fields=["audited"])


def inconclusive(evaluation: Evaluation, reason: str, *, now: datetime) -> None:
    """An audit said nothing: what earlier ones said holds, and it can be repeated."""
    audit = of(evaluation)
    if audit is not None and audit.state in (Audited.WAITING, Audited.INCONCLUSIVE):
        change(audit, Audited.INCONCLUSIVE, reason, now=now)


def of(evaluation: Evaluation) -> BoardAudit | None:
    """The locked row whose latest audit this evaluation is."""
    return BoardAudit.objects.select_for_update(of=("self",)).filter(evaluation=evaluation).first()


def board_audit(submission: Submission, device_id: str) -> BoardAudit | None:
    """The audit that counts for a submission on a device.

    One that refused the same source, entered by whomever for the same version of the task, before
    its own: else a refused kernel would come back under another name.
    """
    audits = BoardAudit.objects.filter(device=device_id).select_related("evaluation", "asked_by")
    own = audits.filter(submission=submission).first()
    if own is not None and own.state == Audited.FAILED:
        return own
    alike = of_the_same_source(submission)
    refusal = audits.filter(submission__in=alike, state=Audited.FAILED).order_by("pk").first()
    return refusal or own


def of_the_same_source(submission: Submission) -> QuerySet[Submission]:
    """Other entries of the same solution for the same version of the task."""
    return Submission.objects.filter(
        digest=submission.digest, task_version=submission.task_version_id
    ).exclude(pk=submission.pk)
