"""Who leads each problem of a device, who did a week ago, and how its record fell."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import QuerySet
from django.utils import timezone

from leaderboard_app.boards.best import entries_of
from leaderboard_app.boards.heads import heads
from leaderboard_app.boards.history import WEEK, Leader, days_of
from leaderboard_app.boards.query import Query
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


def _order(leader: Leader, sort: Sort) -> tuple[float, str, str]:
    entry: Entry = leader.entry
    value = {
        Sort.SCORE: _behind(entry),
        Sort.NEWEST: -entry.finished_at.timestamp(),
        Sort.FLOOR: -(entry.floor_fraction or 0.0),
    }.get(sort, 0.0)
    return (value, *entry.problem)


def _behind(entry: Entry) -> float:
    """Less for the better; those without a score come after all that have one."""
    if entry.score:
        return -entry.score.value
    return 1 / (1 + entry.speedup.value) if entry.speedup else 1.0
