"""The best of each board of one task, by one look into an index for each board."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery

from leaderboard_app.boards import filtering
from leaderboard_app.boards.query import Query
from leaderboard_app.boards.ranking import Problem
from runs_app.core.integrity.eligibility import BOARD_ORDER
from runs_app.models import Evaluation
from tasks_app.models import Task, TaskVersion


class Head(NamedTuple):
    """Keys of the evaluations that lead a problem, and that led it before; None where none did."""

    problem: Problem
    leads: UUID
    led: UUID | None


def heads(
    query: Query, problems: Collection[Problem], before: datetime | None = None
) -> Iterator[Head]:
    """Of each of a query's problems that has one; `led` is of what ended `before`."""
    current = Task.objects.filter(slug__in={problem.task for problem in problems})
    versions = TaskVersion.objects.filter(pk__in=current.values("current_version")).order_by()
    standing = filtering.standing_on(query, OuterRef("pk"))
    for direction in sorted({problem.direction for problem in problems}):
        mine = standing.filter(direction=direction)
        earlier = mine.none() if before is None else mine.filter(finished_at__lt=before)
        marked = versions.annotate(leads=_best(mine), led=_best(earlier))
        for slug, leads, led in marked.values_list("task__slug", "leads", "led"):
            if leads is not None and (problem := Problem(slug, direction)) in problems:
                yield Head(problem, leads, led)


def _best(rows: QuerySet[Evaluation]) -> Subquery:
    return Subquery(rows.order_by(*BOARD_ORDER).values("pk")[:1])
