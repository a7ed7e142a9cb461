"""Whose call comes next in a process, and whether its tensors lie where the last one's lay."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from gpu_runner.data.protocol import SAME_PLACE_SHARE
from gpu_runner.data.task import Workload
from gpu_runner.supervisor.measure.collected import Collected

Progress = Callable[[int, int, int], None]
"""Told how many workloads are done, of how many, and how many calls were made."""


def whose_turn(
    pending: Sequence[Workload], collected: Mapping[str, Collected], rng: random.Random
) -> Workload:
    """Random, but for each workload's first call, which comes in the task's order.

    What a kernel allocates then may decide for the whole process where its memory lies, and so
    how fast it is: a kernel with vectors was nearly twice as slow in every other process.
    """
    new = (workload for workload in pending if not collected[workload.name].seeds)
    return next(new, None) or rng.choice(pending)


def stays_in_place(calls: int, rng: random.Random) -> bool:
    """Whether a single call gets new content in the places of the workload's last one.

    calls: of the workload in this process so far. The second always does and the third never, so
    that however few calls there are, pointers and places that a kernel keeps are found.
    """
    return calls == 1 or (calls != 2 and rng.random() < SAME_PLACE_SHARE)
