"""Which audit counts for a submission's place on a device's board, and changes of its state."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from gpu_runner.data.verdict import Mode
from runs_app.core.work import journal, noise
from runs_app.core.work.lifecycle import lockable
from runs_app.models import Audited, BoardAudit, Device, Evaluation, Submission


def change(audit: BoardAudit, state: Audited, reason: str, *, now: datetime) -> None:
    """Store a state, and repeat it on the ranked evaluations of the pair.

    An audit that refuses a source, or no longer does, decides over every entry of that source.
    """
    was = audit.state
    audit.state, audit.reason, audit.changed_at = state, reason, now
    audit.save()
    is_of_all = Audited.FAILED in (was, state)
    for entry in of_the_same_source(audit.submission) if is_of_all else [audit.submission]:
        _repeat(entry, audit.device, now)


def _repeat(submission: Submission, device: Device, now: datetime) -> None:
    """Give the ranked evaluations of a submission the state that counts, and say so."""
    audit = board_audit(submission, device.pk)
    state, reason = (audit.state, audit.reason) if audit else (Audited.NONE.value, "")
    ranked = {"submission": submission, "device": device, "mode": Mode.RANKED.value}
    rows = list(lockable(Evaluation).filter(**ranked).order_by("pk"))
    if not rows:
        return
    begins = state == Audited.WAITING and all(row.audited in noise.COUNT for row in rows)
    for row in rows:
        row.audited = state
    latest = max(rows, key=lambda row: row.created_at)
    journal.tell(latest, "audited", {"state": str(state), "reason": reason}, now=now)
    Evaluation.objects.bulk_update(rows, ["audited", "events_stored"])
    if not begins:
        noise.pool(*rows)


def inherit(evaluation: Evaluation) -> None:
    """Give a ranked evaluation the state that counts for it."""
    audit = board_audit(evaluation.submission, evaluation.device_id)
    if audit is not None and evaluation.audited != audit.state:
        evaluation.audited = audit.state
        evaluation.save(update_fields=["audited"])


def inconclusive(audit: BoardAudit | None, reason: str, *, now: datetime) -> None:
    """An audit said nothing: what earlier ones said holds, and it can be repeated."""
    if audit is not None and audit.state in (Audited.WAITING, Audited.INCONCLUSIVE):
        change(audit, Audited.INCONCLUSIVE, reason, now=now)


def of(evaluation: Evaluation) -> BoardAudit | None:
    """The locked row whose latest audit this evaluation is."""
    rows = BoardAudit.objects.select_for_update(of=("self",)).filter(evaluation=evaluation)
    return rows.select_related("submission", "device").first()


def board_audit(submission: Submission, device_id: str) -> BoardAudit | None:
    """The audit that counts for a submission on a device.

    One that refused the same source, entered by whomever for the same version of the task, before
    its own: else a refused kernel would come back under another name.
    """
    audits = BoardAudit.objects.filter(
        Q(submission=submission) | Q(state=Audited.FAILED),
        submission__in=of_the_same_source(submission),
        device=device_id,
    )
    return min(
        audits.select_related("evaluation", "asked_by").order_by("pk"),
        key=lambda each: (each.state != Audited.FAILED, each.submission_id != submission.pk),
        default=None,
    )


def of_the_same_source(submission: Submission) -> QuerySet[Submission]:
    """The entries of the same solution for the same version of the task."""
    return Submission.objects.filter(
        digest=submission.digest, task_version=submission.task_version_id
    )
