"""The outputs that are verified: a random sample of the calls, and retained extremes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from enum import Enum

from gpu_runner.data.plan import Plan
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.measure.layout import aligned, output_bytes
from gpu_runner.supervisor.oracle.client import Description

_WATCHED = 2  # chosen: whoever does only a part of its work there mostly does


class Sample(Enum):
    """Why an output is verified.

    What decides about a time is verified whatever the draw: the fastest call, since whoever leaves
    out work is fast; on a CPU also the call that held the process least and the one that was
    soonest through the gate; and the burst with the least mean, which bounds the time from below.
    """

    SINGLE = "drawn from the single calls"
    FASTEST = "of the single call with the least time that counts"
    LEAST_CPU = "of the single call with the least processor time"
    LEAST_GATED = "of the single call with the least gated time"
    BURST = "drawn from the calls of bursts"
    LEAST_BURST = "of the burst with the least mean"
    VARIED = "drawn from the calls with values of another family"
    WATCHED = "drawn from the calls after the timed ones, some of which are watched"


class SampledOutputs:
    """Slots in an arena that no runner ever sees, for each workload and reason."""

    def __init__(self, arena: Arena, rng: random.Random, *, held: bool) -> None:
        """`arena` is the one that the oracle has inherited; held: keep `LEAST_CPU`, too."""
        self._arena, self._rng, self._held = arena, rng, held
        self._described: Mapping[str, Description] = {}
        self._begin: dict[tuple[str, Sample], int] = {}
        self._slots: dict[tuple[str, Sample], int] = {}

    def prepare(self, described: Mapping[str, Description], plan: Plan) -> None:
        """Size the arena for a process that runs these workloads under this plan."""
        self._described = described
        size = 0
        for name, description in described.items():
            for sample, slots in self._counts(plan, output_bytes(description)).items():
                self._begin[name, sample] = size
                self._slots[name, sample] = slots
                size += slots * output_bytes(description)
        if size > len(self._arena.view):
            self._arena.resize(size)

    def _counts(self, plan: Plan, size: int) -> dict[Sample, int]:
        single = plan.sampled_calls(size)
        return {
            Sample.SINGLE: single,
            Sample.FASTEST: 1,
            Sample.LEAST_CPU: int(self._held),
            Sample.LEAST_GATED: int(self._held),
            Sample.BURST: min(single, plan.sampled_of_bursts) if plan.bursts else 0,
            Sample.LEAST_BURST: single if plan.bursts else 0,
            Sample.VARIED: min(single, plan.max_varied) if plan.varied or plan.near else 0,
            Sample.WATCHED: min(single, _WATCHED),
        }

    def slots(self, workload: str, sample: Sample) -> int:
        """How many outputs there is room for."""
        return self._slots[workload, sample]

    def draw_slot(self, workload: str, index: int, sample: Sample) -> int | None:
        """Slot for the call with this index, or None if it is not to be verified.

        Reservoir sampling: at any time, every call so far is sampled with the same probability.
        """
        slots = self._slots[workload, sample]
        if index < slots:
            return index
        drawn = self._rng.randrange(index + 1)
        return drawn if drawn < slots else None

    def offsets(self, workload: str, slot: int, sample: Sample) -> list[int]:
        """Where the outputs of a slot lie in the arena."""
        description = self._described[workload]
        at = self._begin[workload, sample] + slot * output_bytes(description)
        offsets = []
        for output in description.outputs:
            offsets.append(at)
            at += aligned(output.nbytes)
        return offsets
