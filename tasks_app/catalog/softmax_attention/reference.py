"""Reference of `softmax_attention`: attention of one head, without a mask."""

from __future__ import annotations

import math

import torch
from torch import Tensor

VARIED = ("Q", "K", "V")

HARD = 1 / 4
"""Share of the queries that are hard, at random: the others look like those that are timed."""

SPREAD = 3.0
"""Standard deviation of the scores: a few keys count for each query, and the others a little."""
PEAK = 200.0
"""Score of the last key, or of the first one, for the hard queries.

A maximum that leaves out an end of the keys overflows there.
"""


def make_inputs(q_seq_len: int, kv_seq_len: int, dim_qk: int, dim_v: int) -> dict[str, Tensor]:
    """Float32 Q (q, dim_qk), K (kv, dim_qk) and V (kv, dim_v); K and V uniform in [-1, 1).

    Q is wider than the origin's [-1, 1), where all weights are nearly alike and Y is nearly the
    mean of V.
    """
    queries = (torch.rand(q_seq_len, dim_qk) * 2 - 1) * (3 * SPREAD)
    return {
        "Q": queries,
        "K": torch.rand(kv_seq_len, dim_qk) * 2 - 1,
        "V": torch.rand(kv_seq_len, dim_v) * 2 - 1,
    }


def make_hard_inputs(q_seq_len: int, kv_seq_len: int, dim_qk: int, dim_v: int) -> dict[str, Tensor]:
    """The same, but `HARD` of the queries have a `PEAK`."""
    inputs = make_inputs(q_seq_len, kv_seq_len, dim_qk, dim_v)
    ends = inputs["K"][[0, -1]]
    first, last = ends * (PEAK * math.sqrt(dim_qk) / ends.square().sum(-1, keepdim=True))
    number = torch.randperm(q_seq_len)[:, None]
    hard = torch.where(number % 2 == 0, last, first)
    return inputs | {"Q": torch.where(number < q_seq_len * HARD, hard, inputs["Q"])}


def forward_fn(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """Return softmax(Q K^T / sqrt(dim_qk)) V (q, dim_v)."""
    wide = torch.promote_types(Q.dtype, torch.float32)
    scores = torch.matmul(Q.to(wide), K.to(wide).t()) / math.sqrt(Q.shape[1])
    return torch.matmul(torch.softmax(scores, -1), V.to(wide))


def baseline_fn(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """The same (q, dim_v); a GPU's matrix units take BF16 as it is, and sum in float32.

    Only the weights are rounded in between. A fused attention has one block for many queries, too
    few of them for one head.
    """
    if not Q.is_cuda or Q.dtype is not torch.bfloat16:
        return forward_fn(Q, K, V)
    scores = torch.mm(Q, K.t(), out_dtype=torch.float32) / math.sqrt(Q.shape[1])
    return torch.mm(torch.softmax(scores, -1).to(V.dtype), V)


def forward_scale(Q: Tensor, K: Tensor, V: Tensor, inner_eps: float) -> Tensor:
    """Error scale (q, dim_v): the result, its terms, and what float32 does before.

    That is the error of the scores, through the weights that they change, and of the sums.
    """
    keys, depth = K.shape
    scores = Q @ K.t() / math.sqrt(depth)
    products = torch.sqrt(Q.square() @ K.square().t() / depth)
    unsure = (scores.abs() + products) * (1 + math.sqrt(depth) / 8)
    unsure = unsure + scores.amax(-1, keepdim=True) - scores
    weights = torch.softmax(scores, -1)
    result, moved = (weights @ V).abs(), weights * unsure
    before = weights @ V.abs() * (1 + math.sqrt(keys) / 8)
    before = before + moved @ V.abs() + moved.sum(-1, keepdim=True) * result
    terms = torch.sqrt(result.square() + weights.square() @ V.square())
    return terms + inner_eps * before
