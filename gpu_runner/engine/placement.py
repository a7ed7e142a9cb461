"""Put the inputs of a call into fresh memory of the device, at the offsets that the call names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_ALIGNMENT = 256  # bytes; offsets are multiples of it, as addresses from a CUDA allocator are


class Placement:
    """A range of bytes, guard bands included, and the offsets of tensors in it."""

    def __init__(
        self, source: Tensor, offsets: Sequence[int], device: str, *, in_place: bool = False
    ) -> None:
        """`source`: the bytes, on the host or the device; `offsets`: of each tensor, in bytes.

        `in_place`: `load` gives tensors in the source itself instead of in a copy of it.
        """
        self._source = source
        self._in_place = in_place
        self._offsets = offsets
        self._device = device
        self._flat = source

    @classmethod
    def for_tensors(cls, tensors: Sequence[Tensor], device: str) -> Placement:
        """A range made of these tensors' contiguous bytes, one after the other."""
        offsets: list[int] = []
        size = 0
        for tensor in tensors:
            offsets.append(size)
            size += -(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT
        source = torch.empty(size, dtype=torch.uint8, device=device)
        for tensor, offset in zip(tensors, offsets, strict=True):
            flat = tensor.contiguous().reshape(-1).view(torch.uint8)
            source[offset : offset + flat.numel()] = flat
        return cls(source, offsets, device)

    def load(self, described: Sequence[dict[str, Any]]) -> list[Tensor]:
        """Copy the range into a fresh buffer; the tensors of these descriptions, in order.

        They share the buffer's storage without being views of a tensor, which `torch.compile`
        would treat in another way.
        """
        if self._in_place:
            first = int(self._source.storage_offset())
            pairs = zip(self._offsets, described, strict=True)
            return [_at(self._source, first + offset, entry) for offset, entry in pairs]
        size = self._source.numel()
        buffer = torch.empty(size + _ALIGNMENT, dtype=torch.uint8, device=self._device)
        start = -buffer.data_ptr() % _ALIGNMENT
        self._flat = buffer[start : start + size]
        self._flat.copy_(self._source)
        return [
            _at(buffer, start + offset, entry)
            for offset, entry in zip(self._offsets, described, strict=True)
        ]

    def content(self) -> Tensor:
        """The buffer's bytes as they are now."""
        return self._flat


def _at(buffer: Tensor, offset: int, entry: dict[str, Any]) -> Tensor:
    dtype: torch.dtype = getattr(torch, entry["dtype"])
    empty = torch.empty(0, dtype=dtype, device=buffer.device)
    shape, strides = tuple(entry["shape"]), tuple(entry["strides"])
    return empty.set_(buffer.untyped_storage(), offset // dtype.itemsize, shape, strides)
