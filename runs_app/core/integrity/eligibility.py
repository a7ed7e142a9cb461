"""Which evaluations count on boards, and what keeps the others away."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Case, CharField, OuterRef, Q, QuerySet, TextChoices, Value, When

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Audited, Evaluation, Quarantine, Status, Submission
from tasks_app.models import Task, TaskVersion


class Eligibility(TextChoices):
    """Whether an evaluation counts on boards."""

    ELIGIBLE = "eligible", "Eligible"
    PENDING = "pending", "Pending"
    REJECTED = "rejected", "Rejected"


class Why(TextChoices):
    """The first thing that keeps an evaluation off boards, with a sentence for everybody."""

    REFUSED = "refused", "An admin rejected it, so it doesn't count anywhere."
    QUARANTINED = "quarantined", "It is in quarantine and doesn't count until an admin decides."
    AUDIT_FAILED = "audit_failed", "Its audit failed, so it isn't on a board."
    AUDIT_QUARANTINED = (
        "audit_quarantined",
        "Its audit is in quarantine, so it doesn't count until an admin decides.",
    )
    NOT_RANKED = "not_ranked", "Only ranked evaluations count on boards."
    OF_A_RUN = "of_a_run", "It is a candidate from a run, and candidates aren't on boards."
    PRIVATE = "private", "Its submission is private, so it isn't on a board."
    CANCELLED = "cancelled", "It was canceled."
    UNDER_WAY = "under_way", "It hasn't finished yet."
    SYSTEM_ERROR = ("system_error", "The failure was ours and says nothing about the kernel.")
    NOT_CURRENT = "not_current", "It is for a task version that is no longer ranked."
    NOT_CORRECT = "not_correct", "Only correct results count on boards."
    REPLACED = "replaced", "A later evaluation of the same submission has replaced it."
    COUNTS = "counts", "It counts on its board."

    @property
    def eligibility(self) -> Eligibility:
        """Whether it counts, may still come to count, or does not."""
        if self is Why.COUNTS:
            return Eligibility.ELIGIBLE
        waits = self in (Why.QUARANTINED, Why.AUDIT_QUARANTINED, Why.UNDER_WAY)
        return Eligibility.PENDING if waits else Eligibility.REJECTED

    @property
    def is_doubt(self) -> bool:
        """Whether a suspicion or an audit keeps it away: then it counts in no figure either."""
        return self in _DOUBTS


_CURRENT = Task.objects.filter(state=Task.State.PUBLISHED, current_version__isnull=False).values(
    "current_version"
)
"""A list of versions: of a comparison of columns PostgreSQL expects a single row to pass."""

_PASSES: dict[Why, Q] = {
    Why.REFUSED: ~Q(quarantine=Quarantine.REJECTED),
    Why.QUARANTINED: ~Q(quarantine=Quarantine.OPEN),
    Why.AUDIT_FAILED: ~Q(audited=Audited.FAILED),
    Why.AUDIT_QUARANTINED: ~Q(audited=Audited.SUSPICIOUS),
    Why.NOT_RANKED: Q(mode=Mode.RANKED.value),
    Why.OF_A_RUN: ~Q(submission__origin=Submission.Origin.RUN),
    Why.PRIVATE: Q(submission__private=False),
    Why.CANCELLED: ~Q(status=Status.CANCELLED),
    Why.UNDER_WAY: Q(status__in=(Status.FINISHED, Status.CANCELLED)),
    Why.SYSTEM_ERROR: ~Q(verdict=Verdict.SYSTEM_ERROR.value),
    Why.NOT_CURRENT: Q(task_version__in=_CURRENT),
    Why.NOT_CORRECT: Q(verdict=Verdict.CORRECT.value),
    Why.REPLACED: Q(replaced=False),
}
"""What holds of an evaluation that this does not keep away, in the order in which it is told."""

BOARD_ORDER = ("-merit", "submission__created_at", "pk")
"""The best first, and of equals the one that was entered first."""

_DOUBTS = (Why.REFUSED, Why.QUARANTINED, Why.AUDIT_FAILED, Why.AUDIT_QUARANTINED)
_LAST = (Why.NOT_CURRENT, Why.NOT_CORRECT, Why.REPLACED)


def eligibility(evaluation: Evaluation) -> Why:
    """Why an evaluation counts, or does not."""
    return eligibilities(Evaluation.objects.filter(pk=evaluation.pk))[evaluation.pk]


def eligibilities(rows: QuerySet[Evaluation]) -> dict[UUID, Why]:
    """By id: why each of them counts, or does not."""
    first = [When(~passes, then=Value(why.value)) for why, passes in _PASSES.items()]
    why = Case(*first, default=Value(Why.COUNTS.value), output_field=CharField())
    found = rows.order_by().annotate(why=why).values_list("pk", "why")
    return {pk: Why(value) for pk, value in found}


def eligible_evaluations() -> QuerySet[Evaluation]:
    """What stands on boards: correct, and the latest of its submission and device.

    The fastest of many re-runs would be the luckiest draw; so a re-run replaces what was before,
    even if the new one waits for a person.
    """
    return without_replaced(judged_evaluations().filter(_PASSES[Why.NOT_CORRECT]))


def without_replaced(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """Without those that a later ranked evaluation of the same submission and device replaced."""
    return rows.filter(_PASSES[Why.REPLACED])


def eligible_on(version: TaskVersion | OuterRef) -> QuerySet[Evaluation]:
    """What stands on the boards of one version, current or not.

    Of a version that is no longer current: what would stand there if it were.
    """
    rows = entered_evaluations().filter(_PASSES[Why.NOT_CORRECT], task_version=version)
    return without_replaced(rows)


def judged_evaluations() -> QuerySet[Evaluation]:
    """Those of `entered_evaluations` on current versions of published tasks."""
    return entered_evaluations().filter(_PASSES[Why.NOT_CURRENT])


def entered_evaluations() -> QuerySet[Evaluation]:
    """Finished ranked evaluations of public submissions, right or wrong, without doubts.

    A SYSTEM_ERROR is not the author's, and so it is not there.
    """
    return Evaluation.objects.filter(
        *(passes for why, passes in _PASSES.items() if why not in _LAST)
    )


def held_evaluations() -> QuerySet[Evaluation]:
    """Results that would count on boards if a person had decided: in quarantine, or their audit."""
    waits = (Why.QUARANTINED, Why.AUDIT_QUARANTINED)
    rows = Evaluation.objects.filter(
        *(passes for why, passes in _PASSES.items() if why not in waits)
    )
    return rows.exclude(*(_PASSES[why] for why in waits))


def without_doubts(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """Without those that a suspicion or an audit keeps away."""
    return rows.filter(*(_PASSES[why] for why in _DOUBTS))


def doubted_by_audits(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """Those that an audit keeps away; of their sources, no evaluation in any mode is to be used."""
    return rows.filter(~_PASSES[Why.AUDIT_FAILED] | ~_PASSES[Why.AUDIT_QUARANTINED])


Board = tuple[TaskVersion, str, str]
"""A version of a task, a direction, and a device's slug."""


def leader(version: TaskVersion, direction: str, device_id: str) -> Evaluation | None:
    """The best that stands on a public board, of equals the first; None while nothing does.

    An index finds the best: only its equals are sorted.
    """
    rows = eligible_evaluations().filter(
        task_version=version, direction=direction, device_id=device_id
    )
    rows = rows.select_related("submission__author", "submission__agent", "device")
    best = rows.order_by(*BOARD_ORDER).first()
    if best is not None:
        best.task_version = best.submission.task_version = version
    return best
