"""MAP-Elites grids, one an island: the fastest candidate of each cell (Mouret and Clune 2015)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from runs_app.evolve.history import Candidate, History

Cell = tuple[str, str]
"""Bottleneck class and dominant technique."""


class AddStatus(StrEnum):
    """What became of a candidate that was offered."""

    NEW = "new"  # the first of its cell
    IMPROVED = "improved"  # faster than the one before
    REJECTED = "rejected"


def cell_of(candidate: Candidate) -> Cell:
    """The cell in which a candidate competes; techniques come with the most telling one first."""
    technique = candidate.techniques[0] if candidate.techniques else "plain"
    return candidate.bottleneck or "unknown", technique


class Archive:
    """The fastest correct candidate of each cell."""

    def __init__(self) -> None:
        """Nothing is in it yet."""
        self.cells: dict[Cell, Candidate] = {}

    def add(self, candidate: Candidate) -> AddStatus:
        """Offer a candidate; one that is not correct is rejected."""
        if candidate.latency_ns is None or not candidate.is_correct:
            return AddStatus.REJECTED
        cell = cell_of(candidate)
        elite = self.cells.get(cell)
        if elite is not None and (elite.latency_ns or 0.0) <= candidate.latency_ns:
            return AddStatus.REJECTED
        self.cells[cell] = candidate
        return AddStatus.NEW if elite is None else AddStatus.IMPROVED

    def __iter__(self) -> Iterator[Candidate]:
        """The elites, from the fastest to the slowest."""
        return iter(sorted(self.cells.values(), key=lambda c: (c.latency_ns or 0.0, c.number)))

    def __len__(self) -> int:
        """How many cells are taken."""
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
