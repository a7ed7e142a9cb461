"""Reference of `spmv_csc`: a sparse matrix in CSC form times a dense vector."""

from __future__ import annotations

import torch
from torch import Tensor

EMPTY_EVERY = 16
"""One row and one column in so many is empty, and never the first or the last."""
VARIED = ("values", "x")


def make_inputs(
    rows: int, columns: int, nnz: int, row_skew: float, col_skew: float
) -> dict[str, Tensor]:
    """A random matrix (rows, columns) of `nnz` elements, and a vector x (columns), in [-1, 1).

    row_skew, col_skew: exponent of the power law of the lengths of rows, or of columns; one of
    them is 0, and both are where the elements are spread evenly at random. Raises `ValueError`
    where a line would need more elements than it has places.
    """
    if row_skew > 0:
        row, col = _lines(rows, columns, nnz, row_skew)
        order = torch.argsort(col * rows + row)
        row, col = row[order], col[order]
    else:
        col, row = _lines(columns, rows, nnz, col_skew)
    offsets = torch.zeros(columns + 1, dtype=torch.int64)
    offsets[1:] = torch.bincount(col, minlength=columns).cumsum(0)
    return {
        "values": torch.rand(nnz) * 2 - 1,
        "row_indices": row.to(torch.int32),
        "col_offsets": offsets.to(torch.int32),
        "x": torch.rand(columns) * 2 - 1,
    }


def _lines(count: int, size: int, nnz: int, skew: float) -> tuple[Tensor, Tensor]:
    """For each of `nnz` elements its line of `count`, ascending, and its place of `size` in it.

    Places ascend within a line: one is drawn from each of its equal slices.
    """
    lengths = _lengths(count, nnz, skew)
    usable = size - (size + EMPTY_EVERY // 2 - 2) // EMPTY_EVERY
    if int(lengths.max()) > usable:
        raise ValueError(f"{int(lengths.max())} elements do not fit {usable} places")
    line = torch.repeat_interleave(torch.arange(count), lengths)
    length = lengths[line]
    number = torch.arange(nnz) - (lengths.cumsum(0) - lengths)[line]
    low = number * usable // length
    width = (number + 1) * usable // length - low
    place = low + (torch.rand(nnz, dtype=torch.float64) * width).to(torch.int64)
    passed = (place + EMPTY_EVERY // 2 - 1) // (EMPTY_EVERY - 1)  # unused places before this one
    return line, (place + passed).clamp(max=size - 1)


def _lengths(count: int, nnz: int, skew: float) -> Tensor:
    """Elements a line (count), summing to `nnz`: even at random, or by a power law."""
    rank = torch.randperm(count).to(torch.float64)
    weights = (rank + 1) ** -skew
    weights[1:-1][torch.arange(count)[1:-1] % EMPTY_EVERY == EMPTY_EVERY // 2] = 0
    edges = weights.cumsum(0)
    line = torch.searchsorted(edges, torch.rand(nnz, dtype=torch.float64) * edges[-1], right=True)
    return torch.bincount(line.clamp(max=count - 1), minlength=count)


def forward_fn(
    values: Tensor, row_indices: Tensor, col_offsets: Tensor, x: Tensor, rows: int
) -> Tensor:
    """Return the product (rows), computed in float32 at least."""
    wide = torch.promote_types(values.dtype, torch.float32)
    each = torch.repeat_interleave(
        x.to(wide), col_offsets.diff(), dim=0, output_size=values.numel()
    )
    result = torch.zeros(rows, dtype=wide, device=x.device)
    return result.index_add(0, row_indices, values.to(wide) * each)


def forward_scale(
    values: Tensor, row_indices: Tensor, col_offsets: Tensor, x: Tensor, rows: int
) -> Tensor:
    """Error scale (rows): size and root of summed squared products, growing with the length."""
    size = forward_fn(values, row_indices, col_offsets, x, rows).abs()
    squares = forward_fn(values.square(), row_indices, col_offsets, x.square(), rows)
    lengths = torch.bincount(row_indices, minlength=rows).to(values.dtype)
    return (size + torch.sqrt(squares)) * (1 + torch.sqrt(lengths) / 8)
