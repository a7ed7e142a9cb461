"""How many calls the coordinator releases together, drawn so that nobody can guess it."""

from __future__ import annotations

import random

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.layout import tensor_bytes
from gpu_runner.supervisor.oracle import Description

MOST_CALLS = 16
_MOST_BYTES = {DeviceKind.CUDA: 4 << 30, DeviceKind.CPU: 256 << 20}


def most_calls(description: Description, kind: DeviceKind) -> int:
    """Calls of the largest burst: all of their tensors must exist at once."""
    size = max(tensor_bytes(description), 1)
    return max(1, min(MOST_CALLS, _MOST_BYTES[kind] // size))


def draw_sizes(most: int, count: int, rng: random.Random) -> list[int]:
    """Sizes of `count` bursts in random order: at least three different ones where there are."""
    if count == 0:
        return []
    least = max(1, most // 2)  # large bursts say more: the clock's own error is divided by them
    sizes = [rng.randint(max(least, most - 2), most)]
    others = [size for size in range(1, most + 1) if size not in sizes]
    sizes += rng.sample(others, min(2, len(others), count - 1))
    sizes += [rng.randint(least, most) for _ in range(count - len(sizes))]
    rng.shuffle(sizes)
    return sizes
