"""Who leads each problem of a device, who did a week ago, and how its record fell.

The best of each board is found by one look into an index for each board.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from leaderboard_app.boards import selectors
from leaderboard_app.boards.best import entries_of
from leaderboard_app.boards.history import WEEK, Leader, days_of
from leaderboard_app.boards.query import Query
from leaderboard_app.boards.ranking import Entry, Problem, Sort
from leaderboard_app.boards.selectors import BoardTask
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
    standing = selectors.standing_on(query, OuterRef("pk"))
    for direction in sorted({problem.direction for problem in problems}):
        mine = standing.filter(direction=direction)
        earlier = mine.none() if before is None else mine.filter(finished_at__lt=before)
        marked = versions.annotate(leads=_best(mine), led=_best(earlier))
        for slug, leads, led in marked.values_list("task__slug", "leads", "led"):
            if leads is not None and (problem := Problem(slug, direction)) in problems:
                yield Head(problem, leads, led)


def _best(rows: QuerySet[Evaluation]) -> Subquery:
    return Subquery(rows.order_by(*BOARD_ORDER).values("pk")[:1])


def leaders(
    query: Query,
    rows: QuerySet[Evaluation],
    problems: Collection[Problem],
    tasks: Sequence[BoardTask],
) -> tuple[Leader, ...]:
    """One for each of the problems that has a result among `rows`, in the query's order."""
    now = timezone.now()
    at = selectors.end_of(query.until) if query.until and query.until <= now.date() else now
    found = list(heads(query, problems, at - WEEK))
    keys = {key for _, *pair in found for key in pair if key is not None}
    known = {
        entry.evaluation_id: entry for entry in entries_of(Evaluation.objects.filter(pk__in=keys))
    }
    titles = {task.slug: task.title for task in tasks}
    days = days_of(rows) if found else {}
    shown = [
        Leader(
            entry=known[str(leads)],
            title=titles.get(problem.task, problem.task),
            before=known.get(str(led)),
            days=days.get(problem, ()),
        )
        for problem, leads, led in found
    ]
    return tuple(sorted(shown, key=lambda leader: _order(leader, query.sort)))


def _order(leader: Leader, sort: Sort) -> tuple[bool, float, str, str]:
    """The sort key of a leader. By score, provisional ones come last."""
    entry: Entry = leader.entry
    value = {
        Sort.SCORE: _behind(entry),
        Sort.NEWEST: -entry.finished_at.timestamp(),
        Sort.FLOOR: -(entry.floor_fraction or 0.0),
    }.get(sort, 0.0)
    return (sort is Sort.SCORE and not entry.is_sure, value, *entry.problem)


def _behind(entry: Entry) -> float:
    """Less for the better; those without a score come after all that have one."""
    if entry.score:
        return -entry.score.value
    return 1 / (1 + entry.speedup.value) if entry.speedup else 1.0
