"""Shared memory as tensors."""

from __future__ import annotations

import mmap
import os
import warnings

import torch
from torch import Tensor

from gpu_runner.engine import cuda_runtime

# The inputs are read-only on purpose; PyTorch would warn that it cannot keep a tensor from writing.
warnings.filterwarnings("ignore", message="The given buffer is not writable")


class Arena:
    """A shared file that the coordinator handed over; it sets and grows the file's size.

    `pinned`: set it once CUDA works, and copies to and from the device get faster.
    """

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        self.pinned = False
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

    def whole(self) -> Tensor:
        """All of its bytes; see `bytes`."""
        return self.bytes(0, os.fstat(self._descriptor).st_size)

    def tensor(self, offset: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        """A contiguous tensor whose first byte is at `offset`; see `bytes`."""
        nbytes = dtype.itemsize
        for size in shape:
            nbytes *= size
        if nbytes == 0:
            return torch.empty(shape, dtype=dtype)
        return self.bytes(offset, offset + nbytes).view(dtype).view(shape)

    def _mapped(self, size: int) -> mmap.mmap:
        if not self._maps or len(self._maps[-1]) < size:
            have = os.fstat(self._descriptor).st_size
            if have < size:
                raise ValueError(f"an arena has {have} bytes, not {size}")
            flags = mmap.MAP_SHARED | mmap.MAP_POPULATE  # no page fault falls into a timed call
            self._maps.append(mmap.mmap(self._descriptor, have, flags, self._access))
            if self.pinned:
                memory = torch.frombuffer(self._maps[-1], dtype=torch.uint8)
                cuda_runtime.pin(memory, writable=bool(self._access & mmap.PROT_WRITE))
        return self._maps[-1]
