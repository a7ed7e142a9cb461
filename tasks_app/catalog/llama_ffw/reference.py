"""Reference of `llama_ffw`: the gated feed-forward block of a LLaMA layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def make_inputs(
    batch_size: int, num_tokens: int, num_features: int, up_features: int
) -> dict[str, Tensor]:
    """Activations (batch_size, num_tokens, num_features) and three weight matrices.

    The weights' variance is 3 over their fan-in, which keeps SiLU away from its linear part.
    """
    return {
        "x": torch.randn(batch_size, num_tokens, num_features) + 0.1,
        "gate_proj": _weights(up_features, num_features),
        "up_proj": _weights(up_features, num_features),
        "down_proj": _weights(num_features, up_features),
    }


def _weights(rows: int, columns: int) -> Tensor:
    return (torch.rand(rows, columns) * 2 - 1).mul_(3 / columns**0.5)


def forward_fn(x: Tensor, gate_proj: Tensor, up_proj: Tensor, down_proj: Tensor) -> Tensor:
    """Return (silu(x @ gate_proj^T) * (x @ up_proj^T)) @ down_proj^T, of the shape of x."""
    return F.linear(F.silu(F.linear(x, gate_proj)) * F.linear(x, up_proj), down_proj)
