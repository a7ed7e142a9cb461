"""Indices that lead outside of a tensor: refused before a device stumbles over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_INDEXED = {
    "gather", "index_add", "index_add_", "index_copy", "index_copy_", "index_select", "scatter",
    "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_",
}  # fmt: skip
"""Operations on (tensor, dimension, indices, ...), whose indices must not be negative."""
_INDEXED_BY_LISTS = {"index", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put"}


def refuse_wild_indices(name: str, args: tuple[Any, ...]) -> None:
    """Raise `IndexError` where an index lies outside, as operations on a CPU do by themselves.

    On a CUDA device the whole process is lost then: its context does not outlive a failed assert.
    Operations that references are known to index with are looked at. What makes a sparse matrix is
    looked at on every device: the libraries that multiply with it read where its places lead.
    """
    if name in SPARSE:
        return SPARSE[name](*args)
    value: Tensor = args[0]
    if name in _INDEXED:
        _refuse_outside(args[2], 0, value.shape[args[1]] if value.dim() else 1)
    elif name == "embedding":
        _refuse_outside(args[1], 0, value.shape[0])
    elif name in ("take", "put", "put_"):
        _refuse_outside(args[1], -value.numel(), value.numel())
    elif name in ("index_fill", "index_fill_"):
        size = value.shape[args[1]] if value.dim() else 1
        _refuse_outside(args[2], -size, size)
    # A mask stands for as many dimensions as it has: then places are not sizes' any more.
    elif name in _INDEXED_BY_LISTS and all(i is None or not _is_mask(i) for i in args[1]):
        for size, indices in zip(value.shape, args[1], strict=False):
            _refuse_outside(indices, -size, size)


def _refuse_wild_rows(offsets: Tensor, places: Tensor, values: Tensor, size: Any) -> None:
    """A matrix by rows, or by columns, and no batch of them: places must be its own."""
    if tuple(offsets.shape) not in {(extent + 1,) for extent in size}:
        raise IndexError("a sparse matrix with too few or too many offsets")
    lengths = offsets.diff()
    if offsets[0] != 0 or offsets[-1] != values.shape[0] or bool((lengths < 0).any()):
        raise IndexError("a sparse matrix with offsets outside of its elements")
    _refuse_outside(places, 0, size[-1] if offsets.numel() == size[0] + 1 else size[0])


def _refuse_wild_places(_sparse: int, _dense: int, size: Any, places: Tensor, *_: Any) -> None:
    """The same of one by coordinates: `places` is (dimensions, elements)."""
    for extent, indices in zip(size, places, strict=False):
        _refuse_outside(indices, 0, extent)


SPARSE: dict[str, Callable[..., None]] = {
    "sparse_compressed_tensor": _refuse_wild_rows,
    "_sparse_coo_tensor_with_dims_and_tensors": _refuse_wild_places,
}
"""Operations that make a sparse matrix, and what they must not be given."""


def _is_mask(indices: Tensor) -> bool:
    return indices.dtype in (torch.bool, torch.uint8)


def _refuse_outside(indices: Tensor | None, low: int, end: int) -> None:
    if indices is None or indices.numel() == 0:
        return
    least, most = torch.aminmax(indices)
    if least < low or most >= end:
        raise IndexError(f"an index outside of [{low}, {end})")
