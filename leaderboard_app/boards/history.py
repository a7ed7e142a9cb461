"""How boards came to be: the fastest time of each day, and who led a week ago."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.db.models import F, Min, Q, QuerySet, RowRange, Window

from leaderboard_app.boards.ranking import Entry, Problem
from runs_app.models import Evaluation

WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Day:
    """The fastest time so far, in nanoseconds, and the best speedup so far, after a day."""

    day: date
    latency_ns: float
    speedup: float | None


@dataclass(frozen=True, kw_only=True)
class Leader:
    """Who leads a problem, who did a week ago, and its fastest times by day.

    `days` begins with the first result, and has a day for each on which the record fell.
    """

    entry: Entry
    title: str
    before: Entry | None
    days: tuple[Day, ...] = ()

    @property
    def problem(self) -> Problem:
        """What it leads."""
        return self.entry.problem

    @property
    def movement(self) -> str:
        """What a week changed: new, taken, improved or same."""
        if self.before is None:
            return "new"
        if self.before.evaluation_id == self.entry.evaluation_id:
            return "same"
        return "improved" if self.before.author.agent_id == self.entry.author.agent_id else "taken"

    @property
    def gain(self) -> float | None:
        """How many times as fast as the leader a week ago; None without one."""
        return self.before.latency.value / self.entry.latency.value if self.before else None

    @property
    def trend(self) -> list[float]:
        """Speeds in calls a second, record by record: up is better."""
        return speeds(self.days)

    @property
    def trend_words(self) -> str:
        """What the trend shows, for those who see none."""
        return in_words(self.days)


def speeds(days: Iterable[Day]) -> list[float]:
    """Calls a second, record by record."""
    return [1e9 / day.latency_ns for day in days]


def in_words(days: Sequence[Day]) -> str:
    """How the record fell."""
    if len(days) < 2:
        return "one record so far"
    gain = days[0].latency_ns / days[-1].latency_ns
    return f"{len(days)} records since {days[0].day}, {gain:.2f} times as fast by now"


def days_of(rows: QuerySet[Evaluation]) -> dict[Problem, tuple[Day, ...]]:
    """By problem, the days on which its record fell; rows are correct results of one device."""
    columns = ("task_version__task__slug", "direction", "finished_at", "latency_ns", "speedup_best")
    days: dict[Problem, list[Day]] = {}
    for task, direction, moment, latency, speedup in _records(rows).values_list(*columns):
        held = days.setdefault(Problem(task, direction), [])
        best = max(filter(None, (speedup, held[-1].speedup if held else None)), default=None)
        if held and held[-1].day == moment.date():
            held.pop()
        held.append(Day(moment.date(), latency, best))
    return {problem: tuple(held) for problem, held in days.items()}


def _records(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """Those that were faster than all before them, in the order in which they ended."""
    fastest_before = Window(
        Min("latency_ns"),
        partition_by=[F("task_version"), F("direction")],
        order_by=[F("finished_at").asc(), F("pk").asc()],
        frame=RowRange(start=None, end=-1),
    )
    marked = rows.order_by().annotate(before=fastest_before)
    records = marked.filter(Q(before=None) | Q(latency_ns__lt=F("before")))
    return records.order_by("finished_at", "pk")


def progress(days: Iterable[tuple[Day, ...]]) -> list[tuple[date, int, int]]:
    """By day on which a record fell: problems with a result, and those faster than baselines."""
    solved: dict[date, int] = {}
    faster: dict[date, int] = {}
    for records in days:
        solved[records[0].day] = solved.get(records[0].day, 0) + 1
        first = next((d.day for d in records if d.speedup is not None and d.speedup > 1), None)
        if first is not None:
            faster[first] = faster.get(first, 0) + 1
    points, totals = [], [0, 0]
    for day in sorted(solved.keys() | faster.keys()):
        totals = [totals[0] + solved.get(day, 0), totals[1] + faster.get(day, 0)]
        points.append((day, totals[0], totals[1]))
    return points
