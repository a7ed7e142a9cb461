"""Who leads each problem of a device, who did a week ago, and how its record fell."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from django.db.models import QuerySet
from django.utils import timezone

from leaderboard_app.boards.best import entries_of
from leaderboard_app.boards.heads import heads
from leaderboard_app.boards.history import WEEK, Day, Leader, days_of
from leaderboard_app.boards.kept import kept
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.ranking import Entry, Problem, Sort
from leaderboard_app.boards.selectors import BoardTask
from runs_app.models import Evaluation


def leaders(
    query: Query,
    rows: QuerySet[Evaluation],
    problems: Collection[Problem],
    tasks: Sequence[BoardTask],
) -> tuple[Leader, ...]:
    """One for each of the problems that has a result among `rows`, in the query's order."""
    found = list(heads(query, problems, timezone.now() - WEEK))
    keys = {key for _, *pair in found for key in pair if key is not None}
    known = {
        entry.evaluation_id: entry for entry in entries_of(Evaluation.objects.filter(pk__in=keys))
    }
    titles = {task.slug: task.title for task in tasks}
    days = history(query, rows) if found else {}
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


def history(query: Query, rows: QuerySet[Evaluation]) -> dict[Problem, tuple[Day, ...]]:
    """By problem, the days on which its record fell; kept a while."""
    name = hashlib.sha256(
        query.address(by=By.LEADERS, sort=Sort.SPEEDUP, p=1.0).encode()
    ).hexdigest()[:32]
    return kept(f"history:{name}", lambda: days_of(rows))


def _order(leader: Leader, sort: Sort) -> tuple[float, str, str]:
    entry: Entry = leader.entry
    value = {
        Sort.SPEEDUP: -(entry.speedup.value if entry.speedup else 0.0),
        Sort.NEWEST: -entry.finished_at.timestamp(),
        Sort.FLOOR: -(entry.floor_fraction or 0.0),
    }.get(sort, 0.0)
    return (value, *entry.problem)
