"""Reference of `spmv_csr`: a sparse matrix in CSR form times a dense vector."""

from __future__ import annotations

import torch
from torch import Tensor

EMPTY_EVERY = 16
"""One row in so many is empty, and never the first or the last."""


def make_inputs(rows: int, cols: int, nnz: int, skew: float) -> dict[str, Tensor]:
    """A random matrix (rows, cols) of `nnz` elements, and a vector x (cols), uniform in [-1, 1).

    skew: exponent of the power law of the row lengths; 0 spreads the elements evenly at random.
    Raises `ValueError` where a row would need more than `cols` elements.
    """
    lengths = _row_lengths(rows, nnz, skew)
    if int(lengths.max()) > cols:
        raise ValueError(f"a row of {int(lengths.max())} elements does not fit {cols} columns")
    offsets = torch.zeros(rows + 1, dtype=torch.int64)
    offsets[1:] = lengths.cumsum(0)
    return {
        "values": torch.rand(nnz) * 2 - 1,
        "col_indices": _columns(lengths, offsets, cols).to(torch.int32),
        "row_offsets": offsets.to(torch.int32),
        "x": torch.rand(cols) * 2 - 1,
    }


def _row_lengths(rows: int, nnz: int, skew: float) -> Tensor:
    """Elements a row (rows), summing to `nnz`; neither end is one of the empty ones."""
    rank = torch.randperm(rows).to(torch.float64)
    weights = (rank + 1) ** -skew
    weights[1:-1][torch.arange(rows)[1:-1] % EMPTY_EVERY == EMPTY_EVERY // 2] = 0
    edges = weights.cumsum(0)
    row = torch.searchsorted(edges, torch.rand(nnz, dtype=torch.float64) * edges[-1], right=True)
    return torch.bincount(row.clamp(max=rows - 1), minlength=rows)


def _columns(lengths: Tensor, offsets: Tensor, cols: int) -> Tensor:
    """Sorted, distinct columns (nnz): one drawn from each of a row's equal slices of `cols`."""
    length = torch.repeat_interleave(lengths, lengths)
    start = torch.repeat_interleave(offsets[:-1], lengths)
    position = torch.arange(length.numel()) - start
    low = position * cols // length
    width = (position + 1) * cols // length - low
    return low + (torch.rand(length.numel(), dtype=torch.float64) * width).to(torch.int64)


def forward_fn(values: Tensor, col_indices: Tensor, row_offsets: Tensor, x: Tensor) -> Tensor:
    """Return the product (rows), computed in float32 at least."""
    wide = torch.promote_types(values.dtype, torch.float32)
    shape = (row_offsets.numel() - 1, x.numel())
    matrix = torch.sparse_csr_tensor(
        row_offsets, col_indices, values.to(wide), size=shape, check_invariants=False
    )
    return matrix @ x.to(wide)


def forward_scale(values: Tensor, col_indices: Tensor, row_offsets: Tensor, x: Tensor) -> Tensor:
    """Error scale (rows): size and root of summed squared products, growing with the length."""
    size = forward_fn(values, col_indices, row_offsets, x).abs()
    squares = forward_fn(values.square(), col_indices, row_offsets, x.square())
    lengths = row_offsets.diff().to(values.dtype)
    return (size + torch.sqrt(squares)) * (1 + torch.sqrt(lengths) / 8)
