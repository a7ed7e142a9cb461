"""Memory that a kernel will be given: settled pages, filled with huge values."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gpu_runner.data.poison import HUGE

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # glibc's malloc.h
_TILE_BYTES = 1 << 20  # chosen: noise that seldom repeats


def keep_freed_memory() -> None:
    """Let malloc hand out freed memory again instead of returning it to the system.

    A GPU's caching allocator does the same. Otherwise each large output of a call would come as
    fresh pages, and the time of the call would be mostly that of page faults.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc only
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, -1)


class Poison:
    """Fills the blocks that an allocator will hand out next with huge random values."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._tile = torch.frombuffer(bytearray(os.urandom(_TILE_BYTES)), dtype=torch.uint8)
        self._tile.bitwise_or_(HUGE)
        self._phase = 0

    def spread(self, sizes: Sequence[int], flush: Callable[[Tensor], None]) -> None:
        """Allocate blocks of these sizes in bytes, fill them, put them out of cache, free them."""
        blocks = [torch.empty(size, dtype=torch.uint8, device=self._device) for size in sizes]
        for block in blocks:
            if block.is_cuda:
                block.random_().bitwise_or_(HUGE)
            else:
                self._fill(block)
            flush(block)

    def _fill(self, block: Tensor) -> None:
        self._phase = (self._phase + 1009) % (_TILE_BYTES - 1)
        tile = self._tile.roll(self._phase)
        whole = block.numel() // _TILE_BYTES * _TILE_BYTES
        block[:whole].view(-1, _TILE_BYTES).copy_(tile)
        block[whole:].copy_(tile[: block.numel() - whole])
