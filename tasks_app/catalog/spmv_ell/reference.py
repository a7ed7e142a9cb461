"""Reference of `spmv_ell`: a sparse matrix in ELLPACK form times a dense vector."""

from __future__ import annotations

import torch
from torch import Tensor

EMPTY_EVERY = 16
"""One row and one column in so many is empty, and never the first or the last."""
SCATTERED = 0.25
"""Share of the rows whose padding stands between the elements, and not behind them."""
VARIED = ("values", "x")


def make_inputs(
    rows: int, cols: int, max_nnz_per_row: int, nnz: int, skew: float
) -> dict[str, Tensor]:
    """A random matrix (rows, cols) of `nnz` elements, and a vector x (cols), uniform in [-1, 1).

    The values of the padding are drawn as all others. skew: exponent of the power law of the row
    lengths; 0 spreads the elements evenly at random. Raises `ValueError` where they do not fit.
    """
    lengths = _lengths(rows, max_nnz_per_row, nnz, skew)
    return {
        "values": torch.rand(rows, max_nnz_per_row) * 2 - 1,
        "col_ids": _padded_columns(lengths, max_nnz_per_row, cols).to(torch.int32),
        "x": torch.rand(cols) * 2 - 1,
    }


def _lengths(rows: int, longest: int, nnz: int, skew: float) -> Tensor:
    """Elements a row (rows), `longest` at most, summing to `nnz`: `nnz` of its slots at random.

    By the power law a row may use fewer slots than it has.
    """
    rank = torch.randperm(rows).to(torch.float64)
    slots = torch.ceil(longest * (rank + 1) ** -skew).to(torch.int64)
    slots[1:-1][torch.arange(rows)[1:-1] % EMPTY_EVERY == EMPTY_EVERY // 2] = 0
    if int(slots.sum()) < nnz:
        raise ValueError(f"{nnz} elements do not fit {int(slots.sum())} slots")
    row = torch.repeat_interleave(torch.arange(rows), slots)
    return torch.bincount(row[torch.randperm(row.numel())[:nnz]], minlength=rows)


def _spread(number: Tensor, length: Tensor, size: int) -> Tensor:
    """The places in [0, size) of a row's elements: one drawn from each of `length` equal slices."""
    low = number * size // length
    width = (number + 1) * size // length - low
    return low + (torch.rand(number.numel(), dtype=torch.float64) * width).to(torch.int64)


def _padded_columns(lengths: Tensor, longest: int, cols: int) -> Tensor:
    """Columns (rows, longest), ascending and distinct within a row, and -1 in what is left."""
    usable = cols - (cols + EMPTY_EVERY // 2 - 2) // EMPTY_EVERY
    if int(lengths.max()) > usable:
        raise ValueError(f"{int(lengths.max())} elements do not fit {usable} columns")
    rows, nnz = lengths.numel(), int(lengths.sum())
    row = torch.repeat_interleave(torch.arange(rows), lengths)
    number = torch.arange(nnz) - (lengths.cumsum(0) - lengths)[row]
    column = _spread(number, lengths[row], usable)
    column += (column + EMPTY_EVERY // 2 - 1) // (EMPTY_EVERY - 1)  # past the unused columns
    scattered = (torch.rand(rows) < SCATTERED)[row]
    slot = torch.where(scattered, _spread(number, lengths[row], longest), number)
    padded = torch.full((rows, longest), -1)
    padded[row, slot] = column.clamp(max=cols - 1)
    return padded


def forward_fn(values: Tensor, col_ids: Tensor, x: Tensor) -> Tensor:
    """Return the product (rows), computed in float32 at least, in CSR form without padding."""
    wide = torch.promote_types(values.dtype, torch.float32)
    held = col_ids >= 0
    offsets = torch.nn.functional.pad(held.sum(1).cumsum(0), (1, 0))
    columns, elements = col_ids[held].to(offsets.dtype), values.to(wide)[held]
    shape = (col_ids.shape[0], x.shape[0])
    matrix = torch.sparse_csr_tensor(offsets, columns, elements, shape, check_invariants=False)
    return matrix @ x.to(wide)


def baseline_fn(values: Tensor, col_ids: Tensor, x: Tensor) -> Tensor:
    """The same (rows): padding, -1, finds the zero behind the vector's end."""
    wide = torch.promote_types(values.dtype, torch.float32)
    padded = torch.nn.functional.pad(x.to(wide), (0, 1))
    return (values * padded[col_ids]).sum(1)


def forward_scale(values: Tensor, col_ids: Tensor, x: Tensor) -> Tensor:
    """Error scale (rows): size and root of summed squared products, growing with the length."""
    size = forward_fn(values, col_ids, x).abs()
    squares = forward_fn(values.square(), col_ids, x.square())
    lengths = (col_ids >= 0).sum(1).to(values.dtype)
    return (size + torch.sqrt(squares)) * (1 + torch.sqrt(lengths) / 8)
