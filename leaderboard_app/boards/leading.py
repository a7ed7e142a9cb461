"""Who leads each problem of a device, who did a week ago, and how its record fell."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from leaderboard_app.boards.best import entries_of
from leaderboard_app.boards.history import WEEK, Day, Leader, days_of
from leaderboard_app.boards.kept import kept
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.ranking import Entry, Problem, Sort
from leaderboard_app.boards.selectors import BoardTask
from runs_app.models import Evaluation
from tasks_app.models import Task, TaskVersion

HISTORY_KEPT_S = 300
"""How old the history of a board may be: of many results it takes seconds to read."""


def leaders(
    query: Query,
    rows: QuerySet[Evaluation],
    problems: Collection[Problem],
    tasks: Sequence[BoardTask],
) -> tuple[Leader, ...]:
    """One for each of the problems that has a result among `rows`, in the query's order."""
    pairs = _pairs(rows, problems, timezone.now() - WEEK)
    keys = {key for pair in pairs.values() for key in pair if key is not None}
    known = {
        entry.evaluation_id: entry for entry in entries_of(Evaluation.objects.filter(pk__in=keys))
    }
    titles = {task.slug: task.title for task in tasks}
    days = history(query, rows) if pairs else {}
    found = [
        Leader(
            entry=known[str(now)],
            title=titles.get(problem.task, problem.task),
            before=known.get(str(before)),
            days=days.get(problem, ()),
        )
        for problem, (now, before) in pairs.items()
    ]
    return tuple(sorted(found, key=lambda leader: _order(leader, query.sort)))


def history(query: Query, rows: QuerySet[Evaluation]) -> dict[Problem, tuple[Day, ...]]:
    """By problem, the days on which its record fell; kept for some minutes."""
    name = hashlib.sha256(
        query.address(by=By.LEADERS, sort=Sort.SPEEDUP, p=1.0).encode()
    ).hexdigest()[:32]
    return kept(f"history:{name}", lambda: days_of(rows), HISTORY_KEPT_S)


def _pairs(
    rows: QuerySet[Evaluation], problems: Collection[Problem], before: datetime
) -> dict[Problem, tuple[UUID, UUID | None]]:
    """Keys of the fastest now and then; one look into an index for each problem."""
    current = Task.objects.filter(slug__in={problem.task for problem in problems})
    versions = TaskVersion.objects.filter(pk__in=current.values("current_version")).order_by()
    found: dict[Problem, tuple[UUID, UUID | None]] = {}
    for direction in sorted({problem.direction for problem in problems}):
        mine = rows.filter(task_version=OuterRef("pk"), direction=direction)
        marked = versions.annotate(
            leads=_fastest(mine), led=_fastest(mine.filter(finished_at__lt=before))
        )
        for slug, leads, led in marked.values_list("task__slug", "leads", "led"):
            if leads is not None and (problem := Problem(slug, direction)) in problems:
                found[problem] = (leads, led)
    return found


def _fastest(rows: QuerySet[Evaluation]) -> Subquery:
    return Subquery(rows.order_by("latency_ns").values("pk")[:1])


def _order(leader: Leader, sort: Sort) -> tuple[float, str, str]:
    entry: Entry = leader.entry
    value = {
        Sort.SPEEDUP: -(entry.speedup.value if entry.speedup else 0.0),
        Sort.NEWEST: -entry.finished_at.timestamp(),
        Sort.FLOOR: -(entry.floor_fraction or 0.0),
    }.get(sort, 0.0)
    return (value, *entry.problem)
