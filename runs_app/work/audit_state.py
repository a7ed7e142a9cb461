"""Changes of what audits say of a submission's place on a board."""

from __future__ import annotations

from datetime import datetime

from gpu_runner.data.verdict import Mode
from runs_app.models import Audited, BoardAudit, Device, Evaluation, Submission
from runs_app.work import journal, withdrawn
from runs_app.work.board_audit import board_audit, of_the_same_source


def change(audit: BoardAudit, state: Audited, reason: str, *, now: datetime) -> None:
    """Store a state, and repeat it on the ranked evaluations of the pair.

    An audit that refuses a source, or no longer does, decides over every entry of that source.
    """
    was = audit.state
    audit.state, audit.reason, audit.changed_at = state, reason, now
    audit.save()
    if state in (Audited.FAILED, Audited.SUSPICIOUS):
        withdrawn.note()
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
    latest = rows.select_for_update(of=("self",)).order_by("-created_at").first()
    if latest is not None:  # tell those who look at it
        payload = {"state": str(state), "reason": reason}
        journal.write(latest, "audited", payload, now=now)


def inherit(evaluation: Evaluation) -> None:
    """Give a ranked evaluation the state that counts for it; the caller saves it."""
    if evaluation.mode != Mode.RANKED:
        return
    audit = board_audit(evaluation.submission, evaluation.device_id)
    if audit is not None:
        evaluation.audited = audit.state


def inconclusive(evaluation: Evaluation, reason: str, *, now: datetime) -> None:
    """An audit said nothing: what earlier ones said holds, and it can be repeated."""
    audit = of(evaluation)
    if audit is not None and audit.state in (Audited.WAITING, Audited.INCONCLUSIVE):
        change(audit, Audited.INCONCLUSIVE, reason, now=now)


def of(evaluation: Evaluation) -> BoardAudit | None:
    """The locked row whose latest audit this evaluation is."""
    return BoardAudit.objects.select_for_update(of=("self",)).filter(evaluation=evaluation).first()
