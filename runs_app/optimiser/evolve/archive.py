"""MAP-Elites grids, one an island: the fastest candidate of each cell (Mouret and Clune 2015).

And what a search draws next, a parent, a partner and a language model, and when it stops a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from runs_app.optimiser.evolve.budget import cost_usd
from runs_app.optimiser.evolve.commands import Role
from runs_app.optimiser.evolve.config import ModelSpec, Problem
from runs_app.optimiser.evolve.feedback import Feedback
from runs_app.optimiser.evolve.history import Candidate, History

Cell = tuple[str, str]
"""Bottleneck class and dominant technique."""
LEAST_HEADROOM = 0.05
"""What is at the floor still gets this much of the attention: floors are estimates."""


REACH = 1.5
"""A kernel that is this many times as slow as the fastest of its island is no parent. Asked to
edit such a one, a strong model wished for the fastest instead (runs of 2026-11-27)."""


def cell_of(candidate: Candidate) -> Cell:
    """The cell in which a candidate competes; techniques come with the most telling one first."""
    technique = candidate.techniques[0] if candidate.techniques else "plain"
    return candidate.bottleneck or "unknown", technique


class Archive:
    """The fastest correct candidate of each cell."""

    def __init__(self) -> None:
        self.cells: dict[Cell, Candidate] = {}

    def add(self, candidate: Candidate) -> None:
        """Offer a candidate; only a correct one that is faster than its cell's elite stays."""
        if candidate.latency_ns is None or not candidate.is_correct:
            return
        cell = cell_of(candidate)
        elite = self.cells.get(cell)
        if elite is None or candidate.latency_ns < (elite.latency_ns or 0.0):
            self.cells[cell] = candidate

    def __iter__(self) -> Iterator[Candidate]:
        """The elites, from the fastest to the slowest."""
        return iter(sorted(self.cells.values(), key=lambda c: (c.latency_ns or 0.0, c.number)))

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def best(self) -> Candidate | None:
        """The fastest of all cells."""
        return next(iter(self), None)


def populate(history: History, islands: int, interval: int) -> list[Archive]:
    """The islands' archives, in the order in which hardware spoke.

    Kernels of generation 0 are on every island. After every `interval` measured candidates the best
    of each island is offered to the next, in a ring.
    """
    archives = [Archive() for _ in range(islands)]
    for count, candidate in enumerate(history.settled, start=1):
        everywhere = candidate.place.generation == 0
        for archive in archives if everywhere else [archives[candidate.place.island]]:
            archive.add(candidate)
        if count % interval == 0:
            migrants = [archive.best for archive in archives]
            for archive, migrant in zip(archives, [migrants[-1], *migrants[:-1]], strict=True):
                if migrant is not None:
                    archive.add(migrant)
    return archives


def headroom(candidate: Candidate | None) -> float:
    """Share of a kernel's time that is above the physical limit; all of it where none is known."""
    known = candidate.floor_fraction if candidate is not None else None
    return max(LEAST_HEADROOM, 1 - (known or 0.0))


def draw_parent(elites: Sequence[Candidate], dice: Random) -> Candidate:
    """One of the elites, given from fast to slow: weighted by headroom over rank."""
    fastest_ns = elites[0].latency_ns or 0.0
    near = [elite for elite in elites if (elite.latency_ns or 0.0) <= REACH * fastest_ns]
    weights = [headroom(elite) / rank for rank, elite in enumerate(near, start=1)]
    return dice.choices(near, weights)[0]


def draw_partner(
    parent: Candidate, island: int, archives: list[Archive], dice: Random
) -> Candidate | None:
    """Another elite of the island, else of the others; None where there is no other kernel."""
    at_home = [elite for elite in archives[island] if elite is not parent]
    abroad = {elite.number: elite for archive in archives for elite in archive}
    abroad.pop(parent.number, None)
    candidates = at_home or [abroad[number] for number in sorted(abroad)]
    return dice.choice(candidates) if candidates else None


def improves(history: History, candidate: Candidate) -> bool:
    """Whether it is faster than its first parent; seeds are, and mends than what they mend."""
    parent = history.candidates.get(candidate.parents[0]) if candidate.parents else None
    while parent is not None and parent.latency_ns is None and parent.parents:
        parent = history.candidates.get(parent.parents[0])  # of a kernel that was mended
    if parent is None or parent.latency_ns is None:
        return True
    return candidate.latency_ns is not None and candidate.latency_ns < parent.latency_ns


def times_mended(history: History, candidate: Candidate) -> int:
    """How many mends lie between a candidate and the proposal that it began as."""
    count, question = 0, history.questions.get(candidate.ask or 0)
    while question is not None and question.role is Role.DEBUG and question.about is not None:
        count += 1
        question = history.questions.get(history.candidates[question.about].ask or 0)
    return count


TYPICAL_TOKENS = (4000, 2000)
"""In and out, of a call to a model that has answered none yet."""


@dataclass
class Arm:
    """A language model, and what its proposals brought."""

    model: ModelSpec
    pulls: int = 0
    reward: float = 0.0  # sum of what `gain` gave
    cost_usd: float = 0.0  # sum

    def add(self, reward: float, cost_usd: float) -> None:
        """Count a proposal. `reward` lies between 0 and 1."""
        self.pulls += 1
        self.reward += reward
        self.cost_usd += cost_usd

    @property
    def price(self) -> float:
        """Expected USD of a call: the price list counts as one call among those made.

        An unknown price counts like a free model's.
        """
        listed = cost_usd(self.model, *TYPICAL_TOKENS) or 0.0
        return (listed + self.cost_usd) / (1 + self.pulls)


def gain(parent_ns: float, child_ns: float | None) -> float:
    """Reward of a proposal: 1 where it halves its parent's time, 0 where it is no faster."""
    if child_ns is None or child_ns >= parent_ns:
        return 0.0
    return min(1.0, math.log2(parent_ns / child_ns))


def choose(arms: Sequence[Arm], rng: Random) -> ModelSpec:
    """The model whose sampled reward per dollar is the highest.

    The reward of a model is sampled from Beta(1 + rewards, 1 + pulls - rewards) (Agrawal and Goyal
    2012), and divided by its price. No price counts for less than a tenth of the highest, since
    building and measuring what a free model wrote is not free; if all are free, none counts.
    """
    least = max(arm.price for arm in arms) / 10 or 1.0
    sampled = [
        (rng.betavariate(1 + arm.reward, 1 + arm.pulls - arm.reward) / max(arm.price, least), arm)
        for arm in arms
    ]
    return max(sampled, key=lambda pair: pair[0])[1].model


GENEROUS = 0.5
"""Of a limit, the time that another kernel may take at least: limits are estimates."""

MARGIN = 1.2
"""Times are noisy, so what is only this much too slow is measured to its end."""


def must_beat_ns(problem: Problem, best: Feedback | None) -> Mapping[str, float]:
    """By workload, in ns; empty where it cannot be said.

    That is without a best, and where another workload has no limit, or one that may be beaten.

    A kernel's time is the geometric mean over its workloads. So one of them may take as much more
    than the best one's as all others could take less.
    """
    times = {workload.name: workload.time_ns for workload in best.workloads} if best else {}
    limits = {known.workload: known.limit_ns for known in problem.known}
    floors = {
        w.name: None if problem.may_beat(w.name) else w.floor_ns or limits.get(w.name)
        for w in (best.workloads if best else ())
    }
    found = {}
    for name, time_ns in times.items():
        others = [other for other in times if other != name]
        if any(floors[other] is None for other in others):
            continue
        gains = [times[other] / (GENEROUS * (floors[other] or math.inf)) for other in others]
        found[name] = MARGIN * time_ns * math.prod(max(1.0, gain) for gain in gains)
    return found
