"""The record of a day: of the kernels that lead a board since then, the furthest ahead."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from runs_app.integrity.eligibility import eligible_evaluations
from runs_app.models import Evaluation

DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Record:
    """A kernel that took the lead of a board."""

    evaluation: Evaluation
    """With its task, agent, language model and device."""
    of_today: bool
    """Whether it came within the last day; else no record fell since, and this is the latest."""
    gain: float | None
    """How many times as fast it is as what led before; None for the first on its board."""


def record_of_the_day(now: datetime, keys: Collection[UUID]) -> Record | None:
    """Of those that lead, the last day's with the largest speedup; else the latest.

    `keys` are those of all evaluations that lead a board of one task.
    """
    leaders = _shown(Evaluation.objects.filter(pk__in=keys))
    newest = leaders.filter(finished_at__gt=now - DAY)
    today = newest.order_by("-speedup_best", "pk").first()
    found = today or leaders.order_by("-finished_at").first()
    if found is None:
        return None
    before = _rivals(found).filter(finished_at__lt=found.finished_at)
    led = before.order_by("latency_ns").values_list("latency_ns", flat=True).first()
    gain = led / found.latency_ns if led and found.latency_ns else None
    return Record(evaluation=found, of_today=today is not None, gain=gain)


def fastest_evaluations() -> QuerySet[Evaluation]:
    """The fastest of each board of one task, wherever it was measured.

    Each row is compared with its board: ask for few, such as those of an author or of a day.
    """
    faster = eligible_evaluations().filter(
        task_version=OuterRef("task_version"),
        direction=OuterRef("direction"),
        device=OuterRef("device"),
        latency_ns__lt=OuterRef("latency_ns"),
    )
    return eligible_evaluations().filter(~Exists(faster))


def _shown(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """Those that may be a record, with what is said of one."""
    rows = rows.filter(
        speedup_best__isnull=False, task_version__task__contaminated="", device__imported_from=""
    )
    return rows.select_related(
        "device", "submission__agent", "submission__language_model", "task_version__task"
    )


def _rivals(evaluation: Evaluation) -> QuerySet[Evaluation]:
    return eligible_evaluations().filter(
        task_version=evaluation.task_version_id,
        direction=evaluation.direction,
        device=evaluation.device_id,
    )
