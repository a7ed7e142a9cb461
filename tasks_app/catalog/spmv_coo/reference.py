"""Reference of `spmv_coo`: a sparse matrix in coordinate form times a dense vector."""

from __future__ import annotations

import torch
from torch import Tensor

EMPTY_EVERY = 16
"""One row and one column in so many is empty, and never the first or the last."""
VARIED = ("values", "x")


def make_inputs(
    rows: int, cols: int, nnz: int, row_skew: float, col_skew: float, shuffled: int
) -> dict[str, Tensor]:
    """A random matrix (rows, cols) of `nnz` elements, and a vector x (cols), uniform in [-1, 1).

    row_skew, col_skew: exponent of the power law of the lengths of rows, or of columns; one of
    them is 0, and both are where the elements are spread evenly at random. shuffled: whether the
    elements come in random order, and not row by row. Raises `ValueError` where a line would need
    more elements than it has places.
    """
    if col_skew > 0:
        col, row = _lines(cols, rows, nnz, col_skew)
    else:
        row, col = _lines(rows, cols, nnz, row_skew)
    order = torch.randperm(nnz) if shuffled else torch.argsort(row * cols + col)
    return {
        "values": torch.rand(nnz) * 2 - 1,
        "row_indices": row[order].to(torch.int32),
        "col_indices": col[order].to(torch.int32),
        "x": torch.rand(cols) * 2 - 1,
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
    values: Tensor, row_indices: Tensor, col_indices: Tensor, x: Tensor, rows: int
) -> Tensor:
    """Return the product (rows), computed in float32 at least."""
    wide = torch.promote_types(values.dtype, torch.float32)
    terms = values.to(wide) * x.to(wide).index_select(0, col_indices)
    return torch.zeros(rows, dtype=wide, device=x.device).index_add(0, row_indices, terms)


def baseline_fn(
    values: Tensor, row_indices: Tensor, col_indices: Tensor, x: Tensor, rows: int
) -> Tensor:
    """The same (rows): narrow values meet the wide vector in one operation, and no copy is made."""
    wide = torch.promote_types(values.dtype, torch.float32)
    terms = values * x.to(wide).index_select(0, col_indices)
    return torch.zeros(rows, dtype=wide, device=x.device).index_add_(0, row_indices, terms)


def forward_scale(
    values: Tensor, row_indices: Tensor, col_indices: Tensor, x: Tensor, rows: int
) -> Tensor:
    """Error scale (rows): size and root of summed squared products, growing with the length."""
    size = forward_fn(values, row_indices, col_indices, x, rows).abs()
    squares = forward_fn(values.square(), row_indices, col_indices, x.square(), rows)
    lengths = torch.bincount(row_indices, minlength=rows).to(values.dtype)
    return (size + torch.sqrt(squares)) * (1 + torch.sqrt(lengths) / 8)
