"""The tensors of a call in one range of memory, at the offsets that the call names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_ALIGNMENT = 512  # bytes; as of `arena.ALIGNMENT`


class Placement:
    """A range of bytes, guard bands included, and the offsets of tensors in it."""

    def __init__(self, source: Tensor, offsets: Sequence[int]) -> None:
        """`source`: the bytes, on the host or the device; `offsets`: of each tensor, in bytes."""
        self._source, self._offsets = source, offsets

    @classmethod
    def of(cls, tensors: Sequence[Tensor], device: str) -> Placement:
        """A fresh range that holds these tensors' contiguous bytes, one after the other."""
        offsets: list[int] = []
        size = 0
        for tensor in tensors:
            offsets.append(size)
            size += -(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT
        buffer = torch.empty(size + _ALIGNMENT, dtype=torch.uint8, device=device)
        start = -buffer.data_ptr() % _ALIGNMENT
        source = buffer[start : start + size]
        for tensor, offset in zip(tensors, offsets, strict=True):
            flat = tensor.contiguous().reshape(-1).view(torch.uint8)
            source[offset : offset + flat.numel()] = flat
        return cls(source, offsets)

    def load(self, described: Sequence[dict[str, object]]) -> list[Tensor]:
        """The tensors of these descriptions, in order.

        They share the range's storage without being views of a tensor, which `torch.compile` would
        treat in another way.
        """
        first = int(self._source.storage_offset())
        pairs = zip(self._offsets, described, strict=True)
        return [_at(self._source, first + offset, entry) for offset, entry in pairs]


def _at(buffer: Tensor, offset: int, entry: dict[str, Any]) -> Tensor:
    dtype: torch.dtype = getattr(torch, entry["dtype"])
    empty = torch.empty(0, dtype=dtype, device=buffer.device)
    shape, strides = tuple(entry["shape"]), tuple(entry["strides"])
    return empty.set_(buffer.untyped_storage(), offset // dtype.itemsize, shape, strides)
