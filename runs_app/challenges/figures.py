"""What came of entries: on public workloads while they run, on hidden ones after their end."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from gpu_runner.data.verdict import Verdict
from runs_app.challenges.selectors import (
    best_evaluations,
    ranked_results,
    undoubted,
    used_evaluations,
)
from runs_app.models import Challenge, Entry, Evaluation
from tasks_app.models import TaskVersion


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """One task of one entry.

    `best` is its fastest correct evaluation. `ranked` is the ranked one after the entry's end,
    `is_doubted` whether a suspicion or an audit keeps that one away.
    """

    version: TaskVersion
    used: int
    best: Evaluation | None
    ranked: Evaluation | None
    is_doubted: bool

    @property
    def best_latency_ns(self) -> float | None:
        """Time of the best evaluation before the end."""
        return self.best.latency_ns if self.best else None

    @property
    def is_kept(self) -> bool:
        """Whether it was right on hidden workloads, too."""
        return bool(self.ranked and self.ranked.is_correct and not self.is_doubted)

    @property
    def is_missing(self) -> bool:
        """Whether its ranked evaluation has not ended, or ended by our fault."""
        return self.ranked is not None and self.ranked.verdict in ("", Verdict.SYSTEM_ERROR)

    @property
    def speedup(self) -> float | None:
        """Over eager on public workloads: of the ranked evaluation, else of the best one."""
        source = self.ranked if self.is_kept else self.best
        return source.speedup_eager if source else None

    @property
    def speedup_best(self) -> float | None:
        """The same over the best baseline of each workload."""
        source = self.ranked if self.is_kept else self.best
        return source.speedup_best if source else None

    @property
    def hidden_speedup(self) -> float | None:
        """Over eager on hidden workloads."""
        return self.ranked.hidden_speedup if self.ranked and self.is_kept else None


@dataclass(frozen=True, kw_only=True)
class EntryResult:
    """One entry over all tasks of its challenge; shares are of all tasks.

    Hidden figures are None until every kernel of the entry has been measured on hidden workloads.
    """

    entry: Entry
    tasks: tuple[TaskResult, ...]

    @property
    def is_final(self) -> bool:
        """Whether hidden workloads have been measured."""
        ranked = self.entry.state == Entry.State.RANKED
        return ranked and not any(task.is_missing for task in self.tasks)

    @property
    def used(self) -> int:
        """Evaluations that count against the budgets."""
        return sum(task.used for task in self.tasks)

    @property
    def solved(self) -> int:
        """Tasks with a correct submission."""
        return sum(task.best is not None for task in self.tasks)

    @property
    def kept(self) -> int | None:
        """Tasks whose kernel was right on hidden workloads, too."""
        return sum(task.is_kept for task in self.tasks) if self.is_final else None

    @property
    def correct(self) -> float:
        """Share of tasks that are solved on public workloads."""
        return self.solved / len(self.tasks)

    @property
    def hidden_correct(self) -> float | None:
        """Share of tasks that are right on hidden workloads, too."""
        return None if self.kept is None else self.kept / len(self.tasks)

    @property
    def fast(self) -> float | None:
        """fast_1: share of tasks that are right, and faster than the best baseline.

        None while it runs and the baselines of a task that is solved have not been measured.
        """
        unknown = any(task.best is not None and task.speedup_best is None for task in self.tasks)
        if unknown and not self.is_final:
            return None
        return self._share(task.speedup_best for task in self.tasks)

    @property
    def hidden_fast(self) -> float | None:
        """fast_1 on hidden workloads, against eager, the only baseline there."""
        return self._share(t.hidden_speedup for t in self.tasks) if self.is_final else None

    @property
    def speedup(self) -> float | None:
        """Geometric mean over eager on public workloads, of tasks where it is known."""
        return geometric_mean(task.speedup for task in self.tasks)

    @property
    def hidden_speedup(self) -> float | None:
        """Geometric mean over eager on hidden workloads."""
        return geometric_mean(t.hidden_speedup for t in self.tasks) if self.is_final else None

    @property
    def kept_correct(self) -> float | None:
        """How much of the correctness holds on hidden workloads."""
        return None if self.kept is None or not self.solved else self.kept / self.solved

    @property
    def kept_speed(self) -> float | None:
        """How much of the speed holds on hidden workloads: of tasks that have both speedups."""
        if not self.is_final:
            return None
        return geometric_mean(
            task.hidden_speedup / task.speedup
            for task in self.tasks
            if task.hidden_speedup and task.speedup
        )

    def _share(self, speedups: Iterable[float | None]) -> float:
        return sum(value is not None and value > 1 for value in speedups) / len(self.tasks)


@dataclass(frozen=True)
class Spread:
    """The median of repeats, with the least and the most; `count` repeats have a value."""

    median: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Measure:
    """A figure of an entry: its name, how it is read, and how it is shown (`percent`, `times`)."""

    name: str
    read: Callable[[EntryResult], float | None]
    form: str
    hidden: bool = False


MEASURES = (
    Measure("correct", lambda r: r.correct, "percent"),
    Measure("hidden_correct", lambda r: r.hidden_correct, "percent", hidden=True),
    Measure("kept_correct", lambda r: r.kept_correct, "percent", hidden=True),
    Measure("fast", lambda r: r.fast, "percent"),
    Measure("hidden_fast", lambda r: r.hidden_fast, "percent", hidden=True),
    Measure("speedup", lambda r: r.speedup, "times"),
    Measure("hidden_speedup", lambda r: r.hidden_speedup, "times", hidden=True),
    Measure("kept_speed", lambda r: r.kept_speed, "percent", hidden=True),
)
"""In the order of tables; names are those of the API."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """An agent with one setting, and all its repeats."""

    agent: str
    setting: str
    results: tuple[EntryResult, ...]

    @property
    def name(self) -> str:
        """Agent and setting."""
        return f"{self.agent}, {self.setting}" if self.setting else self.agent

    def spread(self, read: Callable[[EntryResult], float | None]) -> Spread | None:
        """A figure over the repeats that have it."""
        known = [value for result in self.results if (value := read(result)) is not None]
        if not known:
            return None
        return Spread(statistics.median(known), min(known), max(known), len(known))


def entry_results(challenge: Challenge, entries: Sequence[Entry]) -> list[EntryResult]:
    """What came of each of these entries of one challenge, in a handful of queries."""
    keys = [entry.pk for entry in entries]
    versions = list(challenge.versions.select_related("task").order_by("task__slug"))
    used, best, ranked = used_evaluations(keys), best_evaluations(keys), ranked_results(keys)
    fine = undoubted(ranked.values())

    def result(entry: UUID, version: TaskVersion) -> TaskResult:
        key = (entry, version.pk)
        found = ranked.get(key)
        return TaskResult(
            version=version,
            used=used.get(key, 0),
            best=best.get(key),
            ranked=found,
            is_doubted=found is not None and found.pk not in fine,
        )

    return [
        EntryResult(entry=entry, tasks=tuple(result(entry.pk, version) for version in versions))
        for entry in entries
    ]


def contenders(results: Iterable[EntryResult]) -> list[Contender]:
    """The results by agent and setting; the fastest on hidden workloads first, then on public."""
    groups: dict[tuple[str, str], list[EntryResult]] = {}
    for result in results:
        groups.setdefault((result.entry.agent.name, result.entry.setting), []).append(result)
    found = [
        Contender(agent=agent, setting=setting, results=tuple(rows))
        for (agent, setting), rows in groups.items()
    ]
    return sorted(found, key=_order)


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Of the values that are known; None where none is."""
    known = [value for value in values if value]
    return statistics.geometric_mean(known) if known else None


def _order(contender: Contender) -> tuple[float, float, float, str]:
    names = ("hidden_correct", "hidden_speedup", "correct")
    reads = {measure.name: measure.read for measure in MEASURES}
    spreads = [contender.spread(reads[name]) for name in names]
    first, second, third = (-(each.median if each else 0.0) for each in spreads)
    return (first, second, third, contender.name)
