"""Reference of `moe_grouped_matmul`: rows sorted by expert, each times its own expert's weights."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

VARIED = ("x", "weights")

FEWEST = 0.05
"""Share of a busy expert's rows, beside the busiest one's, that is drawn at least."""


def make_inputs(
    num_rows: int, num_experts: int, num_idle: int, in_features: int, out_features: int
) -> dict[str, Tensor]:
    """Rows, the experts' weights, and where each expert's rows begin (num_experts + 1).

    num_idle: experts without a row; each other one has at least one. `num_rows` has to suffice.
    """
    busy = num_experts - num_idle
    if busy < 1 or num_rows < busy:
        raise ValueError(f"{num_rows} rows are too few for {busy} busy experts")
    counts = torch.cat((_counts(busy, num_rows), torch.zeros(num_idle, dtype=torch.int64)))
    counts = counts[torch.randperm(num_experts)]
    offsets = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
    return {
        "x": torch.randn(num_rows, in_features) + 0.2,
        "weights": torch.randn(num_experts, out_features, in_features) / in_features**0.5,
        "offsets": offsets.to(torch.int32),
    }


def _counts(busy: int, num_rows: int) -> Tensor:
    """Uneven numbers (busy) from 1 that sum to `num_rows`."""
    shares = torch.rand(busy, dtype=torch.float64).square() + FEWEST
    counts = 1 + (shares / shares.sum() * (num_rows - busy)).to(torch.int64)
    return counts + (torch.arange(busy) < num_rows - counts.sum())


def forward_fn(x: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
    """Return x[t] @ weights[expert of t]^T (num_rows, out_features)."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return _by_expert(lambda rows, own: rows.to(wide) @ own.to(wide).mT, x, weights, offsets)


def _by_expert(
    product: Callable[[Tensor, Tensor], Tensor], x: Tensor, weights: Tensor, offsets: Tensor
) -> Tensor:
    """What `product` gives of each expert's rows and weights, one behind the other."""
    ends = offsets.tolist()
    found = [
        product(x[begin:end], weights[expert])
        for expert, (begin, end) in enumerate(pairwise(ends))
        if end > begin
    ]
    return torch.cat(found)


def baseline_fn(x: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
    """On a GPU torch's own grouped product of BF16, where it takes the shape."""
    if x.is_cuda and x.shape[1] % 8 == 0 and weights.shape[1] % 8 == 0:
        return torch._grouped_mm(x, weights.mT, offs=offsets[1:])
    if x.is_cuda:
        return _by_expert(lambda rows, own: rows @ own.mT, x, weights, offsets)
    return forward_fn(x, weights, offsets).to(x.dtype)


def forward_scale(x: Tensor, weights: Tensor, offsets: Tensor, inner_eps: float) -> Tensor:
    """Error scale: the result, and the root of its summed squared products in float32.

    Matrix units cut off what does not fit as they add: a bias, not a random walk. The largest
    product of sums of two elements stands for Strassen's algorithm, whose errors are those of
    whole blocks.
    """
    growth = 1 + x.shape[1] ** 0.5 / 8 + x.shape[1] / 128

    def scale(rows: Tensor, own: Tensor) -> Tensor:
        products = torch.sqrt(rows.square() @ own.square().mT)
        products = products + 4 * rows.abs().amax() * own.abs().amax()
        return (rows @ own.mT).abs() + inner_eps * growth * products

    return _by_expert(scale, x, weights, offsets)
