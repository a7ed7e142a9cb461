"""Which evaluations later ones have replaced: the rule, and the column that repeats it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Evaluation, Status


def later() -> QuerySet[Evaluation]:
    """What replaces the evaluation of the query around it.

    That is each later ranked evaluation of its submission and device that has ended, unless it
    ended by our fault.
    """
    return Evaluation.objects.filter(
        Q(created_at__gt=OuterRef("created_at"))
        | Q(created_at=OuterRef("created_at"), pk__gt=OuterRef("pk")),
        ~Q(verdict=Verdict.SYSTEM_ERROR.value),
        mode=Mode.RANKED.value,
        status=Status.FINISHED,
        submission=OuterRef("submission"),
        device=OuterRef("device"),
    )


def settle(submissions: Collection[UUID] | QuerySet[Any, Any]) -> None:
    """Mark what is replaced among the ranked evaluations of these submissions.

    Call it once an evaluation's end is stored. An evaluation that is replaced stays so.
    """
    rows = Evaluation.objects.filter(
        submission__in=submissions, mode=Mode.RANKED.value, replaced=False
    )
    rows.filter(Exists(later())).update(replaced=True)
