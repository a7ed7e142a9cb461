"""Shared memory as tensors."""

from __future__ import annotations

import mmap
import os
import warnings

import torch
from torch import Tensor

# The inputs are read-only on purpose; PyTorch would warn that it cannot keep a tensor from writing.
warnings.filterwarnings("ignore", message="The given buffer is not writable")


class Arena:
    """A shared file, inherited from the coordinator, which sets and grows its size."""

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        self._descriptor = descriptor
        self._access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self._map: mmap.mmap | None = None

    def bytes(self, low: int, high: int) -> Tensor:
        """The bytes [low, high) as a uint8 tensor that shares their memory.

        Raises `ValueError` if they do not lie inside the arena.
        """
        if high == low:
            return torch.empty(0, dtype=torch.uint8)
        if low < 0 or high < low:
            raise ValueError(f"bad range of an arena: {low} to {high}")
        return torch.frombuffer(self._mapped(high), dtype=torch.uint8, count=high - low, offset=low)

    def tensor(self, offset: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        """A contiguous tensor whose first byte is at `offset`; see `bytes`."""
        nbytes = dtype.itemsize
        for size in shape:
            nbytes *= size
        if nbytes == 0:
            return torch.empty(shape, dtype=dtype)
        return self.bytes(offset, offset + nbytes).view(dtype).view(shape)

    def _mapped(self, size: int) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            have = os.fstat(self._descriptor).st_size
            if have < size:
                raise ValueError(f"an arena has {have} bytes, not {size}")
            # An older mapping lives for as long as tensors look into it.
            self._map = mmap.mmap(self._descriptor, have, mmap.MAP_SHARED, self._access)
        return self._map
