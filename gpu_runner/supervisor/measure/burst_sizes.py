"""How many calls the supervisor releases together, drawn so that nobody can guess it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gpu_runner.data.integrity import Burst
from gpu_runner.data.protocol import LONGEST_BURST_S, MOST_BURST_CALLS
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.device import DeviceError
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.nvml import NvmlError
from gpu_runner.supervisor.measure.layout import Sizes
from gpu_runner.supervisor.oracle.client import Description

MOST_ARGUMENTS = 1024
"""Of all calls of a burst: their description waits in a socket while the runner stands still."""

_SHARE_OF_DEVICE = 8  # the oracle has the inputs once more; the rest is the submission's


def room_bytes(config: SupervisorConfig) -> int:
    """Bytes that the tensors of a burst may take; none on a CPU, where no bursts are made.

    Raises `DeviceError` where the GPU is gone.
    """
    if config.kind is DeviceKind.CPU:
        return 0
    try:
        return nvml.memory_total(config.index) // _SHARE_OF_DEVICE
    except NvmlError as error:
        raise DeviceError(f"no CUDA device {config.index}: {error}") from None


def most_calls(description: Description, kind: DeviceKind, room: int) -> int:
    """Calls of the largest burst: all of their tensors must exist at once, in `room` bytes."""
    in_memory = room // max(Sizes.of(description).in_arenas, 1)
    in_socket = MOST_ARGUMENTS // max(description.count(), 1)
    return max(1, min(MOST_BURST_CALLS[kind], in_memory, in_socket))


def affordable(size: int, times_ns: Sequence[float]) -> int:
    """As many calls of a burst as may be made, by the least time that was claimed so far."""
    if not times_ns:
        return size
    least_s = max(min(times_ns), 1.0) / 1e9
    return max(1, min(size, int(LONGEST_BURST_S / least_s)))


def cut_short(bursts: Sequence[Burst], most: int, times_ns: Sequence[float]) -> bool:
    """Whether all bursts were small, because calls before them took longer than later ones do.

    So a process that rests at first buys no small bursts.
    """
    made = max((burst.calls for burst in bursts), default=most)
    return 2 * made < affordable(most // 2, times_ns)


def draw_sizes(most: int, count: int, rng: random.Random) -> list[int]:
    """Sizes of `count` bursts, at least half of the largest: its calls divide the clock's error."""
    return [rng.randint(max(1, most // 2), most) for _ in range(count)]
