"""What repeats of a setting say: geometric means with intervals, and which settings tie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from runs_app.core.integrity.intervals import Interval, geometric_interval


@dataclass(frozen=True, kw_only=True)
class AblationRun:
    """One finished run: its setting by factor, and what came of it.

    speedup: of its best correct kernel, None if it has none. measured, correct: its candidates,
    without the seed. improved: whether its best is faster than its seed. tried: whether it asked
    for a kernel or measured one.
    """

    run: str
    setting: Mapping[str, str]
    speedup: float | None
    improved: bool
    usd: float | None
    tokens: int
    measured: int
    correct: int
    tried: bool = True


@dataclass(kw_only=True)
class Group:
    """Runs with the same values of the chosen factors; `mixes` are other factors that differ."""

    values: tuple[tuple[str, str], ...]
    runs: list[AblationRun] = field(default_factory=list)
    mixes: tuple[str, ...] = ()
    rank: int = 0
    tied: bool = False

    @property
    def interval(self) -> Interval | None:
        """Of the speedups of those runs that found a correct kernel."""
        return geometric_interval(tuple(t.speedup for t in self.runs if t.speedup is not None))

    @property
    def improved_share(self) -> float:
        """Share of its runs that ended with something faster than the seed."""
        return sum(run.improved for run in self.runs) / len(self.runs)

    @property
    def correct_share(self) -> float | None:
        """Share of its measured candidates that were correct."""
        measured = sum(run.measured for run in self.runs)
        return sum(run.correct for run in self.runs) / measured if measured else None

    @property
    def mean_usd(self) -> float | None:
        """Mean cost of a run; None unless all costs are known."""
        known = [run.usd for run in self.runs if run.usd is not None]
        return math.fsum(known) / len(known) if len(known) == len(self.runs) else None

    @property
    def mean_tokens(self) -> float:
        """Mean tokens of a run."""
        return sum(run.tokens for run in self.runs) / len(self.runs)


def varying(runs: Sequence[AblationRun]) -> tuple[str, ...]:
    """Factors that do not have the same value in all runs, in the order of the settings."""
    names = dict.fromkeys(name for run in runs for name in run.setting)
    return tuple(name for name in names if len({t.setting.get(name, "") for t in runs}) > 1)


def telling(runs: Sequence[AblationRun]) -> tuple[str, ...]:
    """The first factors that tell apart all runs that differ: what they imply is left out."""
    chosen: list[str] = []
    for name in varying(runs):
        finer = {tuple(t.setting.get(each, "") for each in (*chosen, name)) for t in runs}
        if len(finer) > len({tuple(t.setting.get(each, "") for each in chosen) for t in runs}):
            chosen.append(name)
    return tuple(chosen)


def group(runs: Sequence[AblationRun], factors: Sequence[str]) -> list[Group]:
    """Runs by their values of `factors`, the best group first, ranked with ties."""
    found: dict[tuple[tuple[str, str], ...], Group] = {}
    for run in runs:
        values = tuple((name, run.setting.get(name, "")) for name in factors)
        found.setdefault(values, Group(values=values)).runs.append(run)
    groups = sorted(found.values(), key=_order)
    for each in groups:
        each.mixes = varying(each.runs)
    _rank(groups)
    return groups


def _order(each: Group) -> tuple[float, tuple[tuple[str, str], ...]]:
    interval = each.interval
    return (-interval.mean if interval else math.inf, each.values)


def _rank(groups: Sequence[Group]) -> None:
    """A group ties with the first of its rank as long as their intervals overlap."""
    leader: Interval | None = None
    rank = 0
    for place, each in enumerate(groups, 1):
        interval = each.interval
        if interval is None:
            continue
        if leader is None or not interval.overlaps(leader):
            rank, leader = place, interval
        each.rank = rank
    counts = [each.rank for each in groups]
    for each in groups:
        each.tied = each.rank > 0 and counts.count(each.rank) > 1
