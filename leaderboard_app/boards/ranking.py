"""Pure ordering of evaluations: best results, geometric means, fast_p, and ties by interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0, 8.0)
"""Values of p on offer for fast_p; 0, 1, 2, 4 and 8 are MSKernelBench's success at tau."""

CURVE_POINTS = 61
CURVE_LARGEST = 16.0
"""The fast_p curve is drawn over p from 1/16 to 16, evenly spaced on a logarithmic axis."""


class Sort(StrEnum):
    """What a board is ordered by."""

    SPEEDUP = "speedup"
    FAST = "fast"
    LATENCY = "latency"
    CORRECT = "correct"
    SCORE = "score"
    FLOOR = "floor"


class Problem(NamedTuple):
    """What a solution solves: a task in one direction."""

    task: str
    direction: str


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """An estimate without noise, such as a count."""
        return cls(value, value, value)

    @classmethod
    def around(cls, value: float, width: float | None) -> Estimate:
        """With a relative half width, which holds of the logarithm; exact where there is none."""
        factor = math.exp(width or 0.0)
        return cls(value, value / factor, value * factor)

    def overlaps(self, other: Estimate) -> bool:
        """Whether the two intervals share a point, so that neither is shown to be better."""
        return self.low <= other.high and other.low <= self.high


class Author(NamedTuple):
    """Who entered a solution and what wrote it; `language_model` is empty for people.

    `kind` is one of `Agent.Kind`, `agent_id` the agent's key.
    """

    submitter: str
    agent: str
    language_model: str
    kind: str = ""
    agent_id: int = 0


Owner = Callable[[Author], str]
"""Picks the name under which results are put together; an empty name is left out."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How many ranked evaluations of one author and problem were judged, and were correct."""

    author: Author
    problem: Problem
    judged: int
    accepted: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One correct ranked evaluation, as the boards see it.

    Speedups are ratios per baseline and against the "best" of them, `hidden_speedup` against
    "eager"; `latency` is in nanoseconds. `audited` is what audits say of the submission there.
    """

    evaluation_id: str
    submission_id: str
    author: Author
    problem: Problem
    device: str
    finished_at: datetime
    latency: Estimate
    speedups: Mapping[str, Estimate] = field(default_factory=dict)
    hidden_speedup: float | None = None
    floor_fraction: float | None = None
    score: float | None = None
    audited: str = "none"
    wrote_task: bool = False  # its submitter wrote the task, and knows hidden workloads of it

    @property
    def verified(self) -> bool:
        """Whether an audit passed; until then the entry is shown as unverified."""
        return self.audited == "passed"

    @property
    def speedup(self) -> Estimate | None:
        """Speedup against the best baseline of each workload."""
        return self.speedups.get("best")

    @property
    def hidden_ratio(self) -> float | None:
        """Public over hidden speedup, both against the eager baseline.

        Far from 1 means tuned to the workloads that it could see.
        """
        public = self.speedups.get("eager")
        if public is None or not self.hidden_speedup:
            return None
        return public.value / self.hidden_speedup


@dataclass(frozen=True, kw_only=True)
class Group:
    """One owner's best results over all problems of a board.

    `attempted` and `problems` count problems, `judged` and `accepted` evaluations.
    """

    owner: str
    entries: tuple[Entry, ...]
    attempted: int
    problems: int
    judged: int
    accepted: int
    fast: Estimate

    @property
    def solved(self) -> int:
        """Number of problems with a correct result."""
        return len(self.entries)

    @property
    def verified(self) -> int:
        """Number of solved problems whose result passed an audit."""
        return sum(entry.verified for entry in self.entries)

    @property
    def correct_share(self) -> float:
        """Share of the board's problems with a correct result."""
        return len(self.entries) / self.problems if self.problems else 0.0

    def speedup(self, baseline: str = "best") -> Estimate | None:
        """Geometric mean over the solved problems that have this baseline."""
        return geometric_mean(
            [entry.speedups[baseline] for entry in self.entries if baseline in entry.speedups]
        )

    @property
    def eager(self) -> Estimate | None:
        """Speedup against the eager baseline."""
        return self.speedup("eager")

    @property
    def compiled(self) -> Estimate | None:
        """Speedup against the compiled baseline."""
        return self.speedup("compiled")

    @property
    def speedups(self) -> list[Estimate]:
        """Speedups against the best baseline, one per solved problem."""
        return [entry.speedup for entry in self.entries if entry.speedup is not None]

    @property
    def score(self) -> float | None:
        """Geometric mean of the P scores."""
        return _mean_of(entry.score for entry in self.entries)

    @property
    def floor_fraction(self) -> float | None:
        """Geometric mean of the fractions of the physical limit."""
        return _mean_of(entry.floor_fraction for entry in self.entries)

    @property
    def hidden_ratio(self) -> float | None:
        """Geometric mean of the public-to-hidden ratios."""
        return _mean_of(entry.hidden_ratio for entry in self.entries)


T = TypeVar("T")


@dataclass(frozen=True)
class Ranked(Generic[T]):
    """A row with its rank; `tied` if another row has the same rank."""

    rank: int
    tied: bool
    row: T


def geometric_mean(estimates: Sequence[Estimate]) -> Estimate | None:
    """Geometric mean with an interval, the estimates' errors taken as independent.

    None for an empty sequence. The half-widths add in quadrature on the logarithmic axis.
    """
    if not estimates:
        return None
    count = len(estimates)
    center = sum(math.log(e.value) for e in estimates) / count
    below = math.sqrt(sum(math.log(e.value / e.low) ** 2 for e in estimates)) / count
    above = math.sqrt(sum(math.log(e.high / e.value) ** 2 for e in estimates)) / count
    return Estimate(math.exp(center), math.exp(center - below), math.exp(center + above))


def fast_p(speedups: Iterable[Estimate], problems: int, p: float) -> Estimate:
    """Share of the `problems` that are solved correctly and more than `p` times as fast.

    `speedups` holds one estimate per solved problem; a problem without one counts against the
    share. The interval moves each speedup to the ends of its own.
    """
    if problems <= 0:
        return Estimate.exact(0.0)
    solved = list(speedups)
    return Estimate(
        sum(s.value > p for s in solved) / problems,
        sum(s.low > p for s in solved) / problems,
        sum(s.high > p for s in solved) / problems,
    )


def fast_curve(speedups: Sequence[Estimate], problems: int) -> list[tuple[float, float]]:
    """Points (p, fast_p) of the curve, p evenly spaced on a logarithmic axis."""
    last = CURVE_POINTS - 1
    ps = [CURVE_LARGEST ** (2 * index / last - 1) for index in range(CURVE_POINTS)]
    return [(p, fast_p(speedups, problems, p).value) for p in ps]


def best_entries(entries: Iterable[Entry], owner: Owner) -> list[Entry]:
    """The fastest entry of each owner, problem and device."""
    best: dict[tuple[str, Problem, str], Entry] = {}
    for entry in entries:
        key = (owner(entry.author), entry.problem, entry.device)
        held = best.get(key)
        if held is None or entry.latency.value < held.latency.value:
            best[key] = entry
    return list(best.values())


def group_entries(
    entries: Iterable[Entry], tallies: Iterable[Tally], owner: Owner, problems: int, p: float
) -> list[Group]:
    """One `Group` per owner in `tallies`; one without a single correct result is there as well."""
    solved: dict[str, list[Entry]] = {}
    for entry in best_entries(entries, owner):
        solved.setdefault(owner(entry.author), []).append(entry)
    tried: dict[str, list[Tally]] = {}
    for tally in tallies:
        tried.setdefault(owner(tally.author), []).append(tally)
    return [
        _group(name, solved.get(name, []), rows, problems, p)
        for name, rows in tried.items()
        if name
    ]


def rank_groups(groups: Iterable[Group], sort: Sort) -> list[Ranked[Group]]:
    """Rank groups; those without the value that `sort` needs come last, with rank 0."""
    return rank(list(groups), lambda group: _group_value(group, sort), lambda g: g.owner)


def rank(
    rows: Sequence[T], value: Callable[[T], Estimate | None], name: Callable[[T], str]
) -> list[Ranked[T]]:
    """Order rows, larger values first; a rank is one more than the number of rows before the tie.

    A row ties with the first row of a tie while their intervals overlap, because neither is shown
    to be better; where they do not, a new rank begins. Rows for which `value` is None come last,
    with rank 0. `name` orders rows of equal value.
    """
    known = [(row, estimate) for row in rows if (estimate := value(row)) is not None]
    known.sort(key=lambda pair: (-pair[1].value, name(pair[0])))
    places: list[int] = []
    for index, (_, estimate) in enumerate(known):
        leader = places[-1] if places else 0
        ties = bool(leader) and estimate.overlaps(known[leader - 1][1])
        places.append(leader if ties else index + 1)
    shared = Counter(places)
    result = [
        Ranked(place, shared[place] > 1, row) for place, (row, _) in zip(places, known, strict=True)
    ]
    rest = sorted((row for row in rows if value(row) is None), key=name)
    return result + [Ranked(0, tied=False, row=row) for row in rest]


def _group(
    name: str, best: Sequence[Entry], tallies: Sequence[Tally], problems: int, p: float
) -> Group:
    speedups = [entry.speedup for entry in best if entry.speedup is not None]
    return Group(
        owner=name,
        entries=tuple(sorted(best, key=lambda entry: entry.problem)),
        attempted=len({tally.problem for tally in tallies}),
        problems=problems,
        judged=sum(tally.judged for tally in tallies),
        accepted=sum(tally.accepted for tally in tallies),
        fast=fast_p(speedups, problems, p),
    )


def _mean_of(values: Iterable[float | None]) -> float | None:
    mean = geometric_mean([Estimate.exact(v) for v in values if v is not None and v > 0])
    return None if mean is None else mean.value


def _group_value(group: Group, sort: Sort) -> Estimate | None:
    if sort is Sort.FAST:
        return group.fast
    if sort is Sort.CORRECT:
        return Estimate.exact(group.correct_share)
    if sort is Sort.SCORE:
        return _exact(group.score)
    if sort is Sort.FLOOR:
        return _exact(group.floor_fraction)
    return group.speedup()


def _exact(value: float | None) -> Estimate | None:
    return None if value is None else Estimate.exact(value)
