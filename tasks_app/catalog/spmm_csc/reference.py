"""Reference of `spmm_csc`: a sparse matrix in CSC form times a dense matrix."""

from __future__ import annotations

import torch
from torch import Tensor

EMPTY_EVERY = 16
"""One row and one column in so many is empty, and never the first or the last."""
VARIED = ("values", "X")


def make_inputs(
    rows: int, columns: int, nnz: int, K: int, row_skew: float, col_skew: float
) -> dict[str, Tensor]:
    """A random matrix (rows, columns) of `nnz` elements, and a matrix X (columns, K), in [-1, 1).

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
        "X": torch.rand(columns, K) * 2 - 1,
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
    values: Tensor, row_indices: Tensor, col_offsets: Tensor, X: Tensor, rows: int
) -> Tensor:
    """Return the product (rows, K), computed in float32 at least."""
    wide = torch.promote_types(values.dtype, torch.float32)
    columns = torch.arange(X.shape[0], device=X.device)
    col_indices = columns.repeat_interleave(col_offsets.diff(), output_size=values.numel())
    places = torch.stack((row_indices.to(torch.int64), col_indices))
    shape = (rows, X.shape[0])
    matrix = torch.sparse_coo_tensor(places, values.to(wide), shape, check_invariants=False)
    return matrix @ X.to(wide)


def baseline_fn(
    values: Tensor, row_indices: Tensor, col_offsets: Tensor, X: Tensor, rows: int
) -> Tensor:
    """The same (rows, K) on a GPU by way of CSR, whose product is torch's fast one.

    Indices stay int32. On a CPU sorting the elements costs more than it gains.
    """
    if not X.is_cuda:
        return forward_fn(values, row_indices, col_offsets, X, rows)
    wide = torch.promote_types(values.dtype, torch.float32)
    places = torch._convert_indices_from_csr_to_coo(col_offsets, row_indices, out_int32=True)
    row, order = torch.sort(row_indices)
    offsets = torch._convert_indices_from_coo_to_csr(row, rows, out_int32=True)
    shape = (rows, X.shape[0])
    matrix = torch.sparse_csr_tensor(
        offsets, places[0][order], values[order].to(wide), shape, check_invariants=False
    )
    return matrix @ X.to(wide)


def forward_scale(
    values: Tensor, row_indices: Tensor, col_offsets: Tensor, X: Tensor, rows: int
) -> Tensor:
    """Error scale (rows, K): size and root of summed squared products, growing with the length."""
    size = forward_fn(values, row_indices, col_offsets, X, rows).abs()
    squares = forward_fn(values.square(), row_indices, col_offsets, X.square(), rows)
    lengths = torch.bincount(row_indices, minlength=rows).to(values.dtype)[:, None]
    return (size + torch.sqrt(squares)) * (1 + torch.sqrt(lengths) / 8)
