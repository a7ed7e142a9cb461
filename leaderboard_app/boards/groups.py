"""Rows for all results of one name: over which problems, how good, and how ranked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import ClassVar

from gpu_runner.data.rounding import three_digits
from leaderboard_app.boards.ranking import (
    Author,
    Entry,
    Owner,
    Problem,
    fast_p,
    geometric_mean,
    mean_rated,
    sure_of,
)
from runs_app.core.integrity.ranking import Estimate, Ranked, rank

LEAST_COMMON = 5
"""Problems that names must share for a comparison to say something; fewer only if no two do."""


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
    """One owner's best results over all problems of a board; means leave out provisional ones.

    `attempted` and `problems` count problems, `judged` and `accepted` submissions by their latest
    ranked evaluation.
    """

    owner: str
    entries: tuple[Entry, ...]
    attempted: int
    problems: int
    judged: int
    accepted: int
    p: float = 1.0
    kind: str = ""  # of the agent; empty for a language model
    usd: float | None = None  # what its runs here cost; None without any, or without a price
    tokens: int | None = None
    runs: str = ""  # how many these were, in words: only kernels that they submitted count here
    no_unlisted: ClassVar[str] = "No result that counts here was compared on unlisted sizes."
    is_sure: ClassVar[bool] = True  # its figures may have a color

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

    @cached_property
    def sure(self) -> list[Entry]:
        """The results that its means are over."""
        return sure_of(self.entries)

    @property
    def provisional(self) -> int:
        """Number of solved problems that means and `fast` leave out."""
        return len(self.entries) - len(self.sure)

    @property
    def verified(self) -> int:
        """Number of solved problems whose result passed an audit."""
        return sum(entry.verified for entry in self.entries)

    @property
    def correct_share(self) -> float:
        """Share of the board's problems with a correct result."""
        return len(self.entries) / self.problems if self.problems else 0.0

    @property
    def speedup(self) -> Estimate | None:
        """Geometric mean over the solved problems that have a baseline."""
        return geometric_mean([entry.speedup for entry in self.sure if entry.speedup])

    @property
    def compared_with(self) -> str:
        """The baseline of `speedup` and the score, as `Entry` names it."""
        return "best" if self.speedup else ""

    @property
    def eager(self) -> Estimate | None:
        """The same against the eager baseline; None unless all of them have it."""
        return self._mean_of_all([entry.eager for entry in self.sure])

    @property
    def compiled(self) -> Estimate | None:
        """The same against the compiled baseline; None unless all of them have it."""
        return self._mean_of_all([entry.compiled for entry in self.sure])

    @property
    def unlisted_speedup(self) -> float | None:
        """Geometric mean of the speedups over the best baseline on unlisted sizes."""
        return _mean_of(entry.unlisted_speedup for entry in self.sure)

    @property
    def counted(self) -> int:
        """Number of problems that fast_p is a share of: without the provisional ones."""
        return self.problems - self.provisional

    @property
    def fast(self) -> Estimate | None:
        """fast_p for the board's p."""
        return self.fast_at(self.p)

    def fast_at(self, p: float) -> Estimate | None:
        """fast_p; None if all is provisional. At 0, every correct result counts."""
        if p <= 0:
            return Estimate.exact(self.correct_share)
        return fast_p(self.rated, self.counted, p)

    @property
    def rated(self) -> list[Estimate]:
        """The values of solved problems that fast_p is computed from."""
        return [entry.rated for entry in self.sure if entry.rated]

    @property
    def rated_mean(self) -> Estimate | None:
        """The mean score or, without any score, the mean speedup on listed sizes."""
        return mean_rated(self.entries)

    @property
    def score(self) -> Estimate | None:
        """Geometric mean of the scores."""
        return geometric_mean([entry.score for entry in self.sure if entry.score])

    @property
    def p_score(self) -> float | None:
        """Geometric mean of the P scores."""
        return _mean_of(entry.p_score for entry in self.sure)

    @property
    def floor_fraction(self) -> float | None:
        """Geometric mean of the fractions of the physical limit."""
        return _mean_of(entry.floor_fraction for entry in self.sure)

    @property
    def listed_ratio(self) -> float | None:
        """Geometric mean of the ratios of listed to unlisted."""
        ratio = _mean_of(entry.listed_ratio for entry in self.sure)
        return None if ratio is None else three_digits(ratio)

    def _mean_of_all(self, found: Sequence[Estimate | None]) -> Estimate | None:
        known = [each for each in found if each is not None]
        return geometric_mean(known) if len(known) == len(found) else None


@dataclass(frozen=True, kw_only=True)
class Section:
    """Names that are ranked against each other: agents, people and shipped kernels stand apart.

    `over` says which problems they were judged over: their own attempts, if no two names attempted
    the same ones. `problems` counts the problems that they have in common, or those of the whole
    board. The names in `left_out` have not attempted all of these.
    """

    kind: str
    over: Over
    problems: int
    groups: tuple[Ranked[Group], ...]
    left_out: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()  # those of the problems that they have in common

    @property
    def is_thin(self) -> bool:
        """Whether it compares names over so few problems that the order says little.

        With `over=all`, it also is if nobody has a final result on that many problems.
        """
        rows = [ranked.row for ranked in self.groups]
        counted = min((row.counted for row in rows), default=0)
        if self.over is Over.ALL:
            counted = min(counted, max((len(row.sure) for row in rows), default=0))
        return len(rows) > 1 and counted < LEAST_COMMON

    @property
    def has_leader(self) -> bool:
        """Whether its first may be called the best: several names share enough problems.

        Each of them must be judged over as many.
        """
        is_even = len({group.row.counted for group in self.groups}) == 1
        is_shared = len(self.groups) > 1 and self.over is not Over.OWN
        return is_shared and is_even and not self.is_thin


@dataclass(frozen=True)
class Standing(Ranked[Group]):
    """A name with its rank in its section."""

    section: Section

    @classmethod
    def of(cls, section: Section, ranked: Ranked[Group]) -> Standing:
        """A name of this section, with its rank."""
        return cls(ranked.rank, ranked.tied, ranked.row, section)


def best_entries(entries: Iterable[Entry], owner: Owner) -> list[Entry]:
    """The best entry of each owner, problem and device."""
    best: dict[tuple[str, Problem, str], Entry] = {}
    for entry in entries:
        key = (owner(entry.author), entry.problem, entry.device)
        held = best.get(key)
        if held is None or entry.merit > held.merit:
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

    Those that attempted most join first; one joins if `LEAST_COMMON` problems stay in common, or,
    where no two share so many, as many as two of them share. A newcomer with a single problem
    therefore doesn't leave the others with that one. Nothing where no two attempted the same.
    """
    for least in range(LEAST_COMMON, 0, -1):
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


def rank_groups(
    groups: Iterable[Group], value: Callable[[Group], Estimate | float | None]
) -> list[Ranked[Group]]:
    """Rank groups by a value; those without it come last, with rank 0.

    Equal shares are told apart by the mean score or, without scores, the mean listed speedup.
    """

    def estimate(group: Group) -> Estimate | None:
        found = value(group)
        return found if found is None or isinstance(found, Estimate) else Estimate.exact(found)

    return rank(
        list(groups),
        estimate,
        lambda group: group.owner,
        lambda group: group.rated_mean,
    )


def _group(
    name: str, best: Sequence[Entry], tallies: Sequence[Tally], p: float, problems: int | None
) -> Group:
    """The row of one name; over what it attempted where `problems` is None."""
    attempted = len({tally.problem for tally in tallies})
    return Group(
        owner=name,
        entries=tuple(sorted(best, key=lambda entry: entry.problem)),
        attempted=attempted,
        problems=attempted if problems is None else problems,
        judged=sum(tally.judged for tally in tallies),
        accepted=sum(tally.accepted for tally in tallies),
        p=p,
        kind=next((tally.author.kind for tally in tallies), ""),
    )


def _mean_of(values: Iterable[float | None]) -> float | None:
    mean = geometric_mean([Estimate.exact(v) for v in values if v is not None and v > 0])
    return None if mean is None else mean.value
