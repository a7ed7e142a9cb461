"""Shared memory as tensors."""

from __future__ import annotations

import math
import mmap
import os
import warnings

import torch
from torch import Tensor

# The inputs are read-only on purpose; PyTorch would warn that it cannot keep a tensor from writing.
warnings.filterwarnings("ignore", message="The given buffer is not writable")


_MOST = 1 / 8  # of a device's memory for sampled outputs


class Arena:
    """A shared file that the supervisor handed over; it sets and grows the file's size."""

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        self._descriptor = descriptor
        self._access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self._maps: list[mmap.mmap] = []  # of growing sizes; tensors may look into any

    def close(self) -> None:
        """Let go of the file; memory that tensors still look into stays until they are gone."""
        self._maps.clear()
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def bytes(self, low: int, high: int) -> Tensor:
        """The bytes [low, high) as a uint8 tensor that shares their memory.

        Raises `ValueError` if they do not lie inside the arena.
        """
        if high == low:
            return torch.empty(0, dtype=torch.uint8)
        if low < 0 or high < low:
            raise ValueError(f"bad range of an arena: {low} to {high}")
        return torch.frombuffer(self._mapped(high), dtype=torch.uint8, count=high - low, offset=low)

    @property
    def size(self) -> int:
        """Bytes that it has now."""
        return os.fstat(self._descriptor).st_size

    def whole(self) -> Tensor:
        """All of its bytes; see `bytes`."""
        return self.bytes(0, self.size)

    def tensor(self, offset: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        """A contiguous tensor whose first byte is at `offset`; see `bytes`."""
        return _tensor(self.bytes(offset, offset + _nbytes(dtype, shape)), dtype, shape)

    def _mapped(self, size: int) -> mmap.mmap:
        if not self._maps or len(self._maps[-1]) < size:
            have = os.fstat(self._descriptor).st_size
            if have < size:
                raise ValueError(f"an arena has {have} bytes, not {size}")
            flags = mmap.MAP_SHARED | mmap.MAP_POPULATE  # no page fault falls into a timed call
            self._maps.append(mmap.mmap(self._descriptor, have, flags, self._access))
        return self._maps[-1]


class SampledOutputs:
    """Where sampled outputs stay until they are verified, at the offsets of an arena.

    On a CUDA device they stay on it, unless they would take much of its memory: to copy them to the
    host and back takes longer than to verify them.
    """

    def __init__(self, arena: Arena, device: str) -> None:
        """`arena` has the size, and the bytes unless they are on the device."""
        self._arena, self._device = arena, device
        self._memory: Tensor | None = None

    def bytes(self, low: int, high: int) -> Tensor:
        """The bytes [low, high) as a uint8 tensor; see `Arena.bytes`.

        When the arena has grown, what was sampled before on the device is gone.
        """
        size = self._arena.size
        if self._device == "cpu" or size > _MOST * torch.cuda.mem_get_info()[1]:
            return self._arena.bytes(low, high)
        if self._memory is None or len(self._memory) < size:
            self._memory = None
            self._memory = torch.empty(size, dtype=torch.uint8, device=self._device)
        return self._memory[low:high]

    def tensor(self, offset: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        """A contiguous tensor whose first byte is at `offset`."""
        return _tensor(self.bytes(offset, offset + _nbytes(dtype, shape)), dtype, shape)


def _nbytes(dtype: torch.dtype, shape: tuple[int, ...]) -> int:
    return dtype.itemsize * math.prod(shape)


def _tensor(memory: Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    if len(memory) == 0:
        return torch.empty(shape, dtype=dtype)
    return memory.view(dtype).view(shape)
