"""What waits for a person, what was decided, and who may stop what counts."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.integrity import AuditState, Check, Suspicion
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Evaluation, Quarantine, QuarantineCase, Status
from tasks_app.disclosure import sees_hidden
from tasks_app.people import Viewer


def open_case_count() -> int:
    """How many cases wait for a decision."""
    return QuarantineCase.objects.filter(state=Quarantine.OPEN).count()


def open_cases() -> QuerySet[QuarantineCase]:
    """Cases that wait for a decision, the oldest first, with their evaluations."""
    return _cases().filter(state=Quarantine.OPEN)


def decided_cases() -> QuerySet[QuarantineCase]:
    """Cases that were decided, newest first, with their evaluations and decisions."""
    return _cases().exclude(state=Quarantine.OPEN).order_by("-created_at", "-pk")


def public_suspicions(evaluation: Evaluation, result: EvaluationResult) -> list[Suspicion]:
    """Suspicions of a result as its reader may see it, with those that only its audit tells of."""
    return list(result.suspicions) if evaluation.quarantine_case is None else suspicions(result)


def suspicions(result: EvaluationResult) -> list[Suspicion]:
    """Those of the result, and those of its audit's checks that it does not name itself."""
    found = list(result.suspicions)
    if any(each.check is Check.AUDIT for each in found):
        return found
    return found + [
        Suspicion(check=Check.AUDIT, reason=f"{each.name}: {each.reason}")
        for each in (result.audit.checks if result.audit else ())
        if each.state is AuditState.SUSPICIOUS
    ]


def decision_reason(evaluation: Evaluation) -> str:
    """Why a person cleared or rejected the evaluation; empty until one did."""
    case = evaluation.quarantine_case
    decision = next(iter(case.decisions.all()), None) if case else None
    return decision.reason if decision else ""


def may_stop(evaluation: Evaluation, user: Viewer) -> bool:
    """Whether `user`, who may cancel a submission's evaluations, may cancel this one.

    An audit is the admins'. So is a ranked evaluation that has begun if one of the same source was
    right before: whoever could stop those that go badly would keep the luckiest of many.
    """
    if sees_hidden(user):
        return True
    if evaluation.mode == Mode.AUDIT:
        return False
    if evaluation.mode != Mode.RANKED or evaluation.status == Status.QUEUED:
        return True
    earlier = Evaluation.objects.filter(
        mode=Mode.RANKED.value,
        task_version=evaluation.task_version_id,
        device=evaluation.device_id,
        verdict=Verdict.CORRECT.value,
        submission__digest=evaluation.submission.digest,
    )
    return not earlier.exclude(pk=evaluation.pk).exists()


def _cases() -> QuerySet[QuarantineCase]:
    evaluations = Evaluation.objects.select_related(
        "device", "submission__agent", "submission__author"
    ).order_by("created_at")
    return QuarantineCase.objects.select_related("task_version__task").prefetch_related(
        Prefetch("evaluations", queryset=evaluations), "decisions__decided_by"
    )
