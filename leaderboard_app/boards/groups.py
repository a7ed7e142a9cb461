"""Rows that stand for many results of one name: over which problems, how good, how ranked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from leaderboard_app.boards.ranking import (
    Author,
    Entry,
    Estimate,
    Owner,
    Problem,
    Ranked,
    Sort,
    fast_p,
    geometric_mean,
    rank,
)

LEAST_COMMON = 5
"""Problems that names must share to be compared, where two of them share so many."""


class Over(StrEnum):
    """Over which problems a name is judged, on a board by agent or language model."""

    COMMON = "common"
    OWN = "own"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How many entries of one author for a problem were judged, and were correct.

    Each counts once, by its latest ranked evaluation.
    """

    author: Author
    problem: Problem
    judged: int
    accepted: int


@dataclass(frozen=True, kw_only=True)
class Group:
    """One owner's best results over all problems of a board.

    `attempted` and `problems` count problems, `judged` and `accepted` submissions by their latest
    ranked evaluation.
    """

    owner: str
    entries: tuple[Entry, ...]
    attempted: int
    problems: int
    judged: int
    accepted: int
    fast: Estimate
    kind: str = ""  # of the agent; empty for a language model
    usd: float | None = None  # what its runs on these problems cost; None if it had none
    tokens: int | None = None

    @property
    def usd_per_solved(self) -> float | None:
        """Money for each problem that it solved; None where it was not paid for."""
        return self.usd / self.solved if self.usd and self.solved else None

    @property
    def agent_id(self) -> int:
        """Key of the agent; 0 where none of its results is correct."""
        return self.entries[0].author.agent_id if self.entries else 0

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
    entries: Iterable[Entry],
    tallies: Iterable[Tally],
    owner: Owner,
    problems: Collection[Problem],
    p: float,
    over: Over = Over.ALL,
) -> list[Group]:
    """One `Group` per owner in `tallies`; one without a single correct result is there as well.

    Each is judged over `problems`, or with `Over.OWN` over those of them that it attempted.
    """
    solved: dict[str, list[Entry]] = {}
    for entry in best_entries(entries, owner):
        if entry.problem in problems:
            solved.setdefault(owner(entry.author), []).append(entry)
    tried: dict[str, list[Tally]] = {}
    for tally in tallies:
        if tally.problem in problems:
            tried.setdefault(owner(tally.author), []).append(tally)
    return [
        _group(name, solved.get(name, []), rows, p, None if over is Over.OWN else len(problems))
        for name, rows in tried.items()
        if name
    ]


def attempts(tallies: Iterable[Tally], owner: Owner) -> dict[str, set[Problem]]:
    """By name: the problems on which it has been judged, right or wrong."""
    found: dict[str, set[Problem]] = {}
    for tally in tallies:
        if name := owner(tally.author):
            found.setdefault(name, set()).add(tally.problem)
    return found


def in_common(tried: Mapping[str, Collection[Problem]]) -> tuple[tuple[str, ...], set[Problem]]:
    """Names that can be compared, and the problems that all of them attempted.

    Those that attempted most join first; one joins if `LEAST_COMMON` problems stay in common, or
    where no two share so many, a single one. Nothing where no two names attempted the same.
    """
    for least in (LEAST_COMMON, 1):
        names, shared = _joined(tried, least)
        if len(names) > 1:
            return names, shared
    return (), set()


def _joined(
    tried: Mapping[str, Collection[Problem]], least: int
) -> tuple[tuple[str, ...], set[Problem]]:
    names: list[str] = []
    shared: set[Problem] = set()
    for name in sorted(tried, key=lambda name: (-len(tried[name]), name)):
        left = shared & set(tried[name]) if names else set(tried[name])
        if len(left) >= least:
            names, shared = [*names, name], left
    return tuple(names), shared


def rank_groups(groups: Iterable[Group], sort: Sort) -> list[Ranked[Group]]:
    """Rank groups; those without the value that `sort` needs come last, with rank 0.

    Equal shares are told apart by the speedup.
    """
    return rank(
        list(groups),
        lambda group: _group_value(group, sort),
        lambda group: group.owner,
        lambda group: group.speedup(),
    )


def _group(
    name: str, best: Sequence[Entry], tallies: Sequence[Tally], p: float, problems: int | None
) -> Group:
    """The row of one name; over what it attempted where `problems` is None."""
    speedups = [entry.speedup for entry in best if entry.speedup is not None]
    attempted = len({tally.problem for tally in tallies})
    count = attempted if problems is None else problems
    return Group(
        owner=name,
        entries=tuple(sorted(best, key=lambda entry: entry.problem)),
        attempted=attempted,
        problems=count,
        judged=sum(tally.judged for tally in tallies),
        accepted=sum(tally.accepted for tally in tallies),
        fast=fast_p(speedups, count, p),
        kind=next((tally.author.kind for tally in tallies), ""),
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
