"""Draws parents: money goes where there is room to gain."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from runs_app.evolve.archive import Archive
from runs_app.evolve.commands import Role
from runs_app.evolve.history import Candidate, History

LEAST_HEADROOM = 0.05
"""What is at the floor still gets this much of the attention: floors are estimates."""


REACH = 1.5
"""A kernel that is this many times as slow as the fastest of its island is no parent. Asked to
edit such a one, a strong model wished for the fastest instead (runs of 2026-11-27)."""


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
