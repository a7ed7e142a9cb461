"""The outputs that the coordinator keeps for verification: a random sample, and what counts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from enum import Enum

from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.measure.layout import aligned, output_bytes
from gpu_runner.supervisor.measure.plan import Plan
from gpu_runner.supervisor.oracle.client import Description


class Kept(Enum):
    """Why an output is kept.

    What decides about a time is verified whatever the draw: where a process's time is that of its
    fastest call, that call, the one that held the process least, and the one that was soonest
    through the gate; and the burst with the least mean, which bounds the time from below.
    """

    SINGLE = "drawn among the single calls"
    FASTEST = "of the single call with the least time that counts"
    LEAST = "of the single call that held the process least"
    GATED = "of the single call that was soonest through the gate"
    BURST = "drawn among the calls of bursts"
    LEAST_BURST = "of the burst with the least mean"
    VARIED = "drawn among the calls with values of another family"


class TakenOutputs:
    """Slots in an arena that no runner ever sees, for each workload and reason."""

    def __init__(self, arena: Arena, rng: random.Random, *, extremes: bool) -> None:
        """`arena` is the one that the oracle has inherited; `extremes`: of single calls, too."""
        self._arena, self._rng, self._extremes = arena, rng, extremes
        self._described: Mapping[str, Description] = {}
        self._begin: dict[tuple[str, Kept], int] = {}
        self._slots: dict[tuple[str, Kept], int] = {}

    def prepare(self, described: Mapping[str, Description], plan: Plan) -> None:
        """Size the arena for a process that runs these workloads under this plan."""
        self._described = described
        size = 0
        for name, description in described.items():
            for kept, slots in self._counts(plan, output_bytes(description)).items():
                self._begin[name, kept] = size
                self._slots[name, kept] = slots
                size += slots * output_bytes(description)
        if size > len(self._arena.view):
            self._arena.resize(size)

    def _counts(self, plan: Plan, size: int) -> dict[Kept, int]:
        single = plan.taken_calls(size)
        return {
            Kept.SINGLE: single,
            Kept.FASTEST: int(self._extremes),
            Kept.LEAST: int(self._extremes),
            Kept.GATED: int(self._extremes),
            Kept.BURST: min(single, plan.taken_of_bursts) if plan.bursts else 0,
            Kept.LEAST_BURST: single if plan.bursts else 0,
            Kept.VARIED: min(single, plan.max_varied) if plan.varied else 0,
        }

    def slots(self, workload: str, kept: Kept) -> int:
        """How many outputs there is room for."""
        return self._slots[workload, kept]

    def draw_slot(self, workload: str, index: int, kept: Kept) -> int | None:
        """Slot for the call with this index, or None if it is not to be verified.

        Reservoir sampling: at any time, every call so far is kept with the same probability.
        """
        slots = self._slots[workload, kept]
        if index < slots:
            return index
        drawn = self._rng.randrange(index + 1)
        return drawn if drawn < slots else None

    def offsets(self, workload: str, slot: int, kept: Kept) -> list[int]:
        """Where the outputs of a slot lie in the arena."""
        description = self._described[workload]
        at = self._begin[workload, kept] + slot * output_bytes(description)
        offsets = []
        for output in description.outputs:
            offsets.append(at)
            at += aligned(output.nbytes)
        return offsets
