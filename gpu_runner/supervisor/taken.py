"""The outputs that the coordinator keeps for verification: a random sample, and the fastest's."""

from __future__ import annotations

import random
from collections.abc import Mapping

from gpu_runner.supervisor.arena import Arena
from gpu_runner.supervisor.layout import aligned, output_bytes
from gpu_runner.supervisor.oracle import Description
from gpu_runner.supervisor.plan import Plan


class TakenOutputs:
    """Slots in an arena that no runner ever sees.

    Each workload has its own for single calls, one more for the fastest of these where it is
    wanted, and its own for calls of bursts.
    """

    def __init__(self, arena: Arena, rng: random.Random, *, fastest: bool) -> None:
        """`arena` is the one that the oracle has inherited; `fastest`: that slot is wanted."""
        self._arena, self._rng, self._fastest = arena, rng, fastest
        self._described: Mapping[str, Description] = {}
        self._begin: dict[tuple[str, bool], int] = {}
        self._slots: dict[tuple[str, bool], int] = {}

    def prepare(self, described: Mapping[str, Description], plan: Plan) -> None:
        """Size the arena for a process that runs these workloads under this plan."""
        self._described = described
        size = 0
        for name, description in described.items():
            single = plan.taken_calls(output_bytes(description))
            for burst, slots in ((False, single), (True, min(single, plan.taken_of_bursts))):
                self._begin[name, burst] = size
                self._slots[name, burst] = slots
                size += (slots + (self._fastest and not burst)) * output_bytes(description)
        if size > len(self._arena.view):
            self._arena.resize(size)

    def draw_slot(self, workload: str, index: int, *, burst: bool = False) -> int | None:
        """Slot for the call with this index, or None if it is not to be verified.

        Reservoir sampling: at any time, every call so far is kept with the same probability.
        """
        slots = self._slots[workload, burst]
        if index < slots:
            return index
        drawn = self._rng.randrange(index + 1)
        return drawn if drawn < slots else None

    def fastest_slot(self, workload: str) -> int:
        """Slot for the fastest single call so far.

        Where its time alone counts, one wrong call among many right ones must not get away.
        """
        return self._slots[workload, False]

    def offsets(self, workload: str, slot: int, *, burst: bool = False) -> list[int]:
        """Where the outputs of a slot lie in the arena."""
        description = self._described[workload]
        at = self._begin[workload, burst] + slot * output_bytes(description)
        offsets = []
        for output in description.outputs:
            offsets.append(at)
            at += aligned(output.nbytes)
        return offsets
