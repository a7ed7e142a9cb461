"""What came of entries: on listed workloads while they run, on hidden ones after their end."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from gpu_runner.data.rounding import three_digits
from gpu_runner.data.scores import geometric_mean
from gpu_runner.data.verdict import Verdict
from runs_app.core.queue.selectors import verdict_in_s
from runs_app.core.work.estimate import when
from runs_app.core.work.result_state import is_sure
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.features.challenges.selectors import (
    best_evaluations,
    ranked_results,
    undoubted,
    used_evaluations,
)
from runs_app.models import Evaluation
from tasks_app.models import TaskVersion

RANKING = "ranking"
"""The state of an entry whose best kernels are being measured, hidden workloads included."""


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
        """Whether its ranked evaluation has not ended, ended by our fault, or lacks a baseline."""
        if self.ranked is None:
            return False
        return self.ranked.awaits_baselines or self.ranked.verdict in ("", Verdict.SYSTEM_ERROR)

    @property
    def shown(self) -> Evaluation | None:
        """The ranked evaluation if it was right, else the best before the end."""
        return self.ranked if self.is_kept else self.best

    @property
    def latency_ns(self) -> float | None:
        """The time that its speedups are computed from."""
        return self.shown.latency_ns if self.shown else None

    @property
    def lacks_baselines(self) -> bool:
        """Whether it's solved and compared with some baselines at most: others aren't measured."""
        shown = self.shown
        return shown is not None and (shown.speedup_best is None or shown.awaits_baselines)

    @property
    def is_sure(self) -> bool:
        """Whether its figures may have a color."""
        return self.shown is None or is_sure(self.shown)

    @property
    def speedup(self) -> float | None:
        """Over the best baseline on listed sizes."""
        return self.shown.speedup_best if self.shown else None

    @property
    def unlisted_speedup(self) -> float | None:
        """The same on unlisted sizes."""
        return self.ranked.unlisted_speedup if self.ranked and self.is_kept else None

    @property
    def score(self) -> float | None:
        """What boards would rank it by."""
        return self.ranked.score if self.ranked and self.is_kept else None


@dataclass(frozen=True, kw_only=True)
class EntryResult:
    """One entry over all tasks of its challenge; shares are of all tasks.

    Hidden figures are None until every kernel of the entry has been measured on hidden workloads.
    """

    entry: Entry
    tasks: tuple[TaskResult, ...]

    @property
    def state(self) -> str:
        """The entry's state; `RANKING` while kernels that were sent to be ranked are measured."""
        return RANKING if self.left_to_rank else self.entry.state

    @property
    def left_to_rank(self) -> list[Evaluation]:
        """Ranked evaluations that have not ended."""
        ranked = (task.ranked for task in self.tasks)
        return [row for row in ranked if row is not None and not row.is_over]

    @property
    def waits_for(self) -> str:
        """The baselines that its results lack; empty if they lack something else, or nothing."""
        missing = [task for task in self.tasks if task.is_missing]
        if not all(task.ranked and task.ranked.awaits_baselines for task in missing):
            return ""
        names = ", ".join(task.version.task.slug for task in missing)
        return f"baselines of {names}" if names else ""

    @property
    def is_final(self) -> bool:
        """Whether hidden workloads have been measured."""
        ranked = self.entry.state == Entry.State.RANKED
        return ranked and not any(task.is_missing for task in self.tasks)

    @property
    def is_sure(self) -> bool:
        """Whether its means may have a color: no result in them is provisional."""
        return all(task.is_sure for task in self.tasks)

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
        """Share of tasks that are solved on listed workloads."""
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
        if not self.is_final and any(task.lacks_baselines for task in self.tasks):
            return None
        return self._share(task.speedup for task in self.tasks)

    @property
    def hidden_fast(self) -> float | None:
        """fast_1 on unlisted sizes."""
        return self._share(t.unlisted_speedup for t in self.tasks) if self.is_final else None

    @property
    def speedup(self) -> float | None:
        """Geometric mean on listed sizes, of tasks where it is known."""
        return _mean(task.speedup for task in self.tasks)

    @property
    def unlisted_speedup(self) -> float | None:
        """Geometric mean on unlisted sizes."""
        if not self.is_final:
            return None
        mean = _mean(t.unlisted_speedup for t in self.tasks)
        return None if mean is None else three_digits(mean)

    @property
    def score(self) -> float | None:
        """Geometric mean of the scores."""
        return _mean(task.score for task in self.tasks) if self.is_final else None

    @property
    def kept_correct(self) -> float | None:
        """How much of the correctness holds on hidden workloads."""
        return None if self.kept is None or not self.solved else self.kept / self.solved

    @property
    def kept_speed(self) -> float | None:
        """How much of the speed holds on unlisted sizes: of tasks that have both speedups."""
        if not self.is_final:
            return None
        both = [(t.unlisted_speedup, t.speedup) for t in self.tasks]
        mean = _mean(h / p for h, p in both if h and p)
        return None if mean is None else three_digits(mean)

    def _share(self, speedups: Iterable[float | None]) -> float:
        return sum(value is not None and value > 1 for value in speedups) / len(self.tasks)


def ranking_words(result: EntryResult, now: datetime) -> str:
    """How far the ranking of an entry that has ended is, and what is missing; else nothing."""
    left = result.left_to_rank
    if not left:
        return " ".join(filter(None, map(_missing, result.tasks)))
    known = [s for row in left if (s := verdict_in_s(row, now)) is not None]
    done = f"; done {when(max(known))}" if known else ""
    sent = sum(task.ranked is not None for task in result.tasks)
    return f"{len(left)} of {sent} kernels left to rank{done}"


def _missing(task: TaskResult) -> str:
    if task.ranked is None or not task.is_missing:
        return ""
    name = task.version.task.slug
    if task.ranked.awaits_baselines:
        return f"Not all baselines of {name} have been measured."
    return f"The runner failed on {name}. An admin can evaluate it again."


@dataclass(frozen=True)
class Spread:
    """The median of repeats, with the least and the most; so many `repeats` have a value."""

    median: float
    low: float
    high: float
    repeats: int


@dataclass(frozen=True)
class Measure:
    """A property of `EntryResult`: how people call it, and how it is shown (`percent`, `times`)."""

    name: str
    words: tuple[str, str]
    form: str
    hidden: bool = False

    def read(self, result: EntryResult) -> float | None:
        """Its value of one entry."""
        value: float | None = getattr(result, self.name)
        return value


MEASURES = (
    Measure("correct", ("Correct", "on listed workloads"), "percent"),
    Measure("hidden_correct", ("Correct", "on hidden workloads, too"), "percent", hidden=True),
    Measure("kept_correct", ("Correct", "share kept"), "percent", hidden=True),
    Measure("fast", ("fast₁", "listed sizes"), "percent"),
    Measure("hidden_fast", ("fast₁", "unlisted sizes"), "percent", hidden=True),
    Measure("speedup", ("Speedup", "listed sizes"), "times"),
    Measure("unlisted_speedup", ("Speedup", "unlisted sizes"), "times", hidden=True),
    Measure("score", ("Score", "listed and unlisted sizes"), "times", hidden=True),
    Measure("kept_speed", ("Speedup", "share kept"), "percent", hidden=True),
)
"""In the order of tables; names are those of the API."""
ORDER = ("hidden_correct", "score", "correct")
"""The measures that rank contenders, the first that tells them apart."""


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

    @property
    def is_sure(self) -> bool:
        """Whether no result in its figures is provisional."""
        return all(result.is_sure for result in self.results)

    def spread(self, name: str) -> Spread | None:
        """A measure over the repeats that have it."""
        known = [value for result in self.results if (value := getattr(result, name)) is not None]
        if not known:
            return None
        return Spread(statistics.median(known), min(known), max(known), len(known))

    def median(self, name: str) -> float:
        """Of a measure; 0 if no repeat has it."""
        spread = self.spread(name)
        return spread.median if spread else 0.0


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
    """The results by agent and setting; the best scores first, then who solved most."""
    groups: dict[tuple[str, str], list[EntryResult]] = {}
    for result in results:
        groups.setdefault((result.entry.agent.name, result.entry.setting), []).append(result)
    found = [
        # Repeats that evaluated something; all of them while none has, so that nobody vanishes.
        Contender(
            agent=agent, setting=setting, results=tuple(r for r in rows if r.used) or tuple(rows)
        )
        for (agent, setting), rows in groups.items()
    ]
    return sorted(found, key=_order)


def _mean(values: Iterable[float | None]) -> float | None:
    """Geometric mean of the values that are known; None where none is."""
    return geometric_mean(value for value in values if value)


def _order(contender: Contender) -> tuple[float, float, float, str]:
    first, second, third = (-contender.median(name) for name in ORDER)
    return (first, second, third, contender.name)
