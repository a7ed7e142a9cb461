"""Changes of what audits say of a submission's place on a board."""

from __future__ import annotations

from datetime import datetime

from gpu_runner.data.verdict import Mode
from runs_app.models import Audited, BoardAudit, Evaluation
from runs_app.services import journal


def change(audit: BoardAudit, state: Audited, reason: str, *, now: datetime) -> None:
    """Store a state, and repeat it on the ranked evaluations of the pair."""
    audit.state, audit.reason, audit.changed_at = state, reason, now
    audit.save()
    rows = Evaluation.objects.filter(
        submission=audit.submission_id, device=audit.device_id, mode=Mode.RANKED.value
    )
    rows.update(audited=state)
    latest = rows.select_for_update(of=("self",)).order_by("-created_at").first()
    if latest is not None:  # tell those who look at it
        payload = {"state": str(state), "reason": reason}
        journal.write(latest, "audited", payload, now=now)


def inherit(evaluation: Evaluation) -> None:
    """Give a ranked evaluation the state that its submission has there; the caller saves it."""
    if evaluation.mode != Mode.RANKED:
        return
    audit = BoardAudit.objects.filter(
        submission=evaluation.submission_id, device=evaluation.device_id
    ).first()
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
