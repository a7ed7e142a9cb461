"""The history of boards: the best result of each day, and who led a week ago."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.db.models import F, Max, Q, QuerySet, RowRange, Window

from leaderboard_app.boards.ranking import Entry, Problem
from runs_app.core.work.result_state import SURE
from runs_app.models import Evaluation
from tasks_app.numbers import times

WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Day:
    """The best result up to the end of a day: its time in nanoseconds, and its score."""

    day: date
    latency_ns: float
    score: float | None


@dataclass(frozen=True, kw_only=True)
class Leader:
    """Who leads a problem, who did a week ago, and its records by day.

    `days` starts with the first result and has an entry for each day with a new record.
    """

    entry: Entry
    title: str
    before: Entry | None
    days: tuple[Day, ...] = ()

    @property
    def problem(self) -> Problem:
        """The problem that it leads."""
        return self.entry.problem

    @property
    def movement(self) -> str:
        """What changed in a week: new, taken, improved or same."""
        if self.before is None:
            return "new"
        if self.before.evaluation_id == self.entry.evaluation_id:
            return "same"
        return "improved" if self.before.author.agent_id == self.entry.author.agent_id else "taken"

    @property
    def gain(self) -> float | None:
        """Its score relative to the leader of a week ago; its speed if either has no score."""
        if self.before is None:
            return None
        if self.before.score and self.entry.score:
            return self.entry.score.value / self.before.score.value
        return self.before.latency.value / self.entry.latency.value

    @property
    def trend(self) -> list[float]:
        """The scores of all records, or their speeds if none has a score. Higher is better."""
        return climbs(self.days)

    @property
    def trend_words(self) -> str:
        """The trend in words, for people who can't see the line."""
        return in_words(self.days)


def climbs(days: Iterable[Day]) -> list[float]:
    """The scores of all records, or calls per second if none has a score."""
    found = list(days)
    scores = [day.score for day in found if day.score is not None]
    return scores or [1e9 / day.latency_ns for day in found]


def in_words(days: Sequence[Day]) -> str:
    """How often the record was broken, and by how much in all."""
    steps = climbs(days)
    if len(steps) < 2:
        return "one record so far"
    gain = steps[-1] / steps[0]
    return (
        f"{len(steps)} records since {days[0].day}, the latest {times(gain)} as good as the first"
    )


def days_of(rows: QuerySet[Evaluation]) -> dict[Problem, tuple[Day, ...]]:
    """The days with a new record, by problem; `rows` are correct results of one device."""
    columns = ("task_version__task__slug", "direction", "finished_at", "latency_ns", "score")
    days: dict[Problem, list[Day]] = {}
    for task, direction, moment, latency, score in _records(rows).values_list(*columns):
        held = days.setdefault(Problem(task, direction), [])
        if held and held[-1].day == moment.date():
            held.pop()
        held.append(Day(moment.date(), latency, score))
    return {problem: tuple(held) for problem, held in days.items()}


def _records(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """Sure results that were better than all before them, in the order in which they ended."""
    best_before = Window(
        Max("merit"),
        partition_by=[F("task_version"), F("direction")],
        order_by=[F("finished_at").asc(), F("pk").asc()],
        frame=RowRange(start=None, end=-1),
    )
    marked = rows.filter(SURE).order_by().annotate(before=best_before)
    records = marked.filter(Q(before=None) | Q(merit__gt=F("before")))
    return records.order_by("finished_at", "pk")


def progress(days: Iterable[tuple[Day, ...]]) -> list[tuple[date, int, int]]:
    """By day with a record: how many problems were solved, and how many beat the baselines."""
    solved: dict[date, int] = {}
    faster: dict[date, int] = {}
    for records in days:
        solved[records[0].day] = solved.get(records[0].day, 0) + 1
        first = next((d.day for d in records if d.score is not None and d.score > 1), None)
        if first is not None:
            faster[first] = faster.get(first, 0) + 1
    points, totals = [], [0, 0]
    for day in sorted(solved.keys() | faster.keys()):
        totals = [totals[0] + solved.get(day, 0), totals[1] + faster.get(day, 0)]
        points.append((day, totals[0], totals[1]))
    return points
