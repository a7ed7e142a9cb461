"""Reference of `multi_head_attention`: softmax attention, head by head."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

SHARP = 20.0
"""How much longer hard queries are: their scores differ by more than float32's exp can hold."""
HARD = 1 / 8
"""Share of the queries that are hard, at random: the others look like those that are timed."""

SHARE = 1 / 8
"""Share of the scores' errors in the error scale."""

VARIED = ("V",)


def make_inputs(N: int, d_model: int, h: int) -> dict[str, Tensor]:
    """Q, K and V (N, d_model), normally distributed."""
    return {name: torch.randn(N, d_model) for name in ("Q", "K", "V")}


def make_hard_inputs(N: int, d_model: int, h: int) -> dict[str, Tensor]:
    """The same, but `HARD` of the rows of Q, and one at least, are `SHARP` times it."""
    inputs = make_inputs(N, d_model, h)
    hard = torch.randperm(N) < max(1, N * HARD)
    return inputs | {"Q": inputs["Q"] * torch.where(hard, SHARP, 1.0)[:, None]}


def forward_fn(Q: Tensor, K: Tensor, V: Tensor, h: int) -> Tensor:
    """Return the heads' results side by side (N, d_model).

    On GPUs the library's fused kernels take the heads as they are: they round nothing but the
    probabilities to a narrow dtype. They want a batch; without one the parts are computed.
    """
    if Q.is_cuda:
        heads = (_heads(tensor, h)[None] for tensor in (Q, K, V))
        return _joined(functional.scaled_dot_product_attention(*heads)[0])
    wide = torch.promote_types(Q.dtype, torch.float32)
    parts = (_heads(tensor.to(wide), h) for tensor in (Q, K, V))
    return _joined(functional.scaled_dot_product_attention(*parts))


def library_cudnn(Q: Tensor, K: Tensor, V: Tensor, h: int) -> Tensor:
    """Fused attention of cuDNN."""
    return _fused(SDPBackend.CUDNN_ATTENTION, Q, K, V, h)


def library_flash(Q: Tensor, K: Tensor, V: Tensor, h: int) -> Tensor:
    """FlashAttention in PyTorch."""
    return _fused(SDPBackend.FLASH_ATTENTION, Q, K, V, h)


def _fused(backend: SDPBackend, Q: Tensor, K: Tensor, V: Tensor, h: int) -> Tensor:
    heads = (_heads(tensor, h)[None] for tensor in (Q, K, V))
    with sdpa_kernel(backend):
        return _joined(functional.scaled_dot_product_attention(*heads)[0])


def forward_scale(Q: Tensor, K: Tensor, V: Tensor, h: int, inner_eps: float) -> Tensor:
    """Error scale (N, d_model): the weighted sum of |V|, with the share of the scores' errors.

    A score's error is as its size and the root of its summed squared products; it changes its own
    weight and, through the denominator, all others. Where Q, K and V are narrow, that is what
    float32 does, beside the rounding of the result and of each weight.
    """
    query, key, value = (_heads(tensor, h) for tensor in (Q, K, V))
    factor = 1 / math.sqrt(query.shape[-1])
    scores = query @ key.mT * factor
    errors = scores.abs() + torch.sqrt(query.square() @ key.square().mT) * factor
    weights = torch.softmax(scores, dim=-1)
    common = (weights * errors).sum(-1, keepdim=True)
    inner = _joined((weights * (1 + SHARE * (errors + common))) @ value.abs())
    if inner_eps == 1:
        return inner
    rounded = torch.sqrt((weights @ value).square() + weights.square() @ value.square())
    return _joined(rounded) + inner_eps * inner


def _heads(tensor: Tensor, h: int) -> Tensor:
    """(N, d_model) as (h, N, d_model / h)."""
    return tensor.reshape(tensor.shape[0], h, -1).transpose(0, 1)


def _joined(heads: Tensor) -> Tensor:
    """(h, N, d_model / h) as (N, d_model)."""
    return heads.transpose(0, 1).flatten(1)
