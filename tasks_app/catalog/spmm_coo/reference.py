"""Reference of `spmm_coo`: a sparse matrix in coordinate form times a dense matrix."""

from __future__ import annotations

import torch
from torch import Tensor

EMPTY_EVERY = 16
"""One row and one column in so many is empty, and never the first or the last."""
VARIED = ("values", "X")


def make_inputs(
    rows: int, cols: int, nnz: int, K: int, skew: float, shuffled: int
) -> dict[str, Tensor | int]:
    """A random matrix (rows, cols) of `nnz` elements, and a matrix X (cols, K), in [-1, 1).

    skew: exponent of the power law of the row lengths; 0 spreads the elements evenly at random.
    shuffled: whether the elements come in random order, and not row by row. Raises `ValueError`
    where a row would need more elements than it has places.
    """
    row, col = _lines(rows, cols, nnz, skew)
    order = torch.randperm(nnz) if shuffled else torch.arange(nnz)
    return {
        "row": rows,  # the name of `rows` in the FP32 signature
        "values": torch.rand(nnz) * 2 - 1,
        "row_indices": row[order].to(torch.int32),
        "col_indices": col[order].to(torch.int32),
        "X": torch.rand(cols, K) * 2 - 1,
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
    values: Tensor, row_indices: Tensor, col_indices: Tensor, X: Tensor, rows: int
) -> Tensor:
    """Return the product (rows, K), computed in float32 at least."""
    wide = torch.promote_types(values.dtype, torch.float32)
    places = torch.stack((row_indices, col_indices))
    shape = (rows, X.shape[0])
    matrix = torch.sparse_coo_tensor(places, values.to(wide), shape, check_invariants=False)
    return matrix @ X.to(wide)


def baseline_fn(
    values: Tensor, row_indices: Tensor, col_indices: Tensor, X: Tensor, rows: int
) -> Tensor:
    """The same (rows, K) by way of CSR, whose product is torch's fast one, with int32 indices.

    A GPU sorts the elements, whatever their order; on a CPU that costs more than it gains. Of BF16
    values the library's sums are too far off where rows are long, and so they are float32.
    """
    wide = torch.promote_types(values.dtype, torch.float32)
    if X.is_cuda:
        row_indices, order = torch.sort(row_indices)
        values, col_indices = values[order], col_indices[order]
    elif bool((row_indices[1:] < row_indices[:-1]).any()):
        return forward_fn(values, row_indices, col_indices, X, rows)
    offsets = torch._convert_indices_from_coo_to_csr(row_indices, rows, out_int32=True)
    shape = (rows, X.shape[0])
    matrix = torch.sparse_csr_tensor(
        offsets, col_indices, values.to(wide), shape, check_invariants=False
    )
    return matrix @ X.to(wide)


def forward_scale(
    values: Tensor, row_indices: Tensor, col_indices: Tensor, X: Tensor, rows: int
) -> Tensor:
    """Error scale (rows, K): size and root of summed squared products, growing with the length."""
    size = forward_fn(values, row_indices, col_indices, X, rows).abs()
    squares = forward_fn(values.square(), row_indices, col_indices, X.square(), rows)
    lengths = torch.bincount(row_indices, minlength=rows).to(values.dtype)[:, None]
    return (size + torch.sqrt(squares)) * (1 + torch.sqrt(lengths) / 8)
