"""How many times as fast as its run's seed a candidate is: both times are from the search.

A ranked time is from another plan, so it is never divided by the seed's, which nobody ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q

from runs_app.models import Candidate, Run
from runs_app.optimiser.evolve.commands import Edit
from tasks_app.numbers import between, ends


@dataclass(frozen=True, kw_only=True)
class SearchTime:
    """A candidate's time in the search, in nanoseconds, and half its 95 % interval over it."""

    ns: float
    spread: float | None


@dataclass(frozen=True, kw_only=True)
class OverSeed:
    """A seed's time over a candidate's, with both times; 2 is twice as fast."""

    seed: SearchTime
    own: SearchTime

    @property
    def value(self) -> float:
        """How many times as fast the candidate is."""
        return self.seed.ns / self.own.ns

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval, where both times have one."""
        if self.seed.spread is None or self.own.spread is None:
            return None
        return ends(self.value, math.hypot(self.seed.spread, self.own.spread))

    @property
    def low(self) -> float | None:
        """The interval's lower end."""
        return self.interval[0] if self.interval else None

    @property
    def high(self) -> float | None:
        """The interval's upper end."""
        return self.interval[1] if self.interval else None

    @property
    def is_level(self) -> bool:
        """Whether the interval holds 1, so that neither is known to be faster."""
        return self.interval is not None and self.interval[0] <= 1 <= self.interval[1]

    @property
    def interval_words(self) -> str:
        """The interval in words; empty without one."""
        return between(*self.interval) if self.interval else ""


def search_time(
    latency_ns: float | None, spread: float | None, told_ns: float | None, told_spread: Any
) -> SearchTime | None:
    """The time in the stored feedback, which is of the search, or else the candidate's only one."""
    if told_ns:
        return SearchTime(ns=told_ns, spread=told_spread)
    return SearchTime(ns=latency_ns, spread=spread) if latency_ns else None


def over_seeds(runs: Iterable[Run]) -> dict[UUID, OverSeed]:
    """What each run has gained over its seed; runs that gained nothing are left out. One query."""
    bests = {run.pk: run.best_id for run in runs if run.has_own_best}
    rows = Candidate.objects.filter(Q(pk__in=bests.values()) | _seeds(bests))
    seeds: dict[UUID, SearchTime | None] = {}
    own: dict[UUID, SearchTime | None] = {}
    for run_id, edit, *times in rows.order_by("-number").values_list("run_id", "edit", *_TIMES):
        (seeds if edit == Edit.SEED else own)[run_id] = search_time(*times)
    pairs = ((run_id, seeds.get(run_id), own.get(run_id)) for run_id in bests)
    return {run_id: OverSeed(seed=seed, own=best) for run_id, seed, best in pairs if seed and best}


def over_seed_of(run: Run, candidate: Candidate) -> OverSeed | None:
    """The same of one candidate; one query."""
    rows = run.candidates.filter(Q(pk=candidate.pk) | Q(edit=Edit.SEED.value))
    found: dict[str, SearchTime | None] = {}
    for pk, edit, *told in rows.order_by("-number").values_list("pk", "edit", *_TIMES):
        time = search_time(*told)
        found |= {"seed": time} if edit == Edit.SEED else {}
        found |= {"own": time} if pk == candidate.pk else {}
    seed, own = found.get("seed"), found.get("own")
    return OverSeed(seed=seed, own=own) if seed and own else None


_TIMES = ("latency_ns", "spread", "feedback__latency_ns", "feedback__spread")


def _seeds(run_ids: Iterable[UUID]) -> Q:
    return Q(run__in=list(run_ids), edit=Edit.SEED.value)
