"""Which audit counts for a submission's place on a device's board."""

from __future__ import annotations

from django.db.models import QuerySet

from runs_app.models import Audited, BoardAudit, Submission


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
