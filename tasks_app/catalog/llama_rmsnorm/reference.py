"""Reference of `llama_rmsnorm`: root-mean-square normalisation over the features."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

FAINT_EVERY = 4
"""One token in so many is faint: the mean square of its features is near `EPS`."""

EPS = 1e-8


def make_inputs(
    batch_size: int, num_tokens: int, num_features: int, eps: float = EPS
) -> dict[str, Tensor | float]:
    """Activations (batch_size, num_tokens, num_features), some tokens faint, and weights."""
    faint = torch.arange(num_tokens) % FAINT_EVERY == 0
    magnitude = torch.where(faint, EPS**0.5, 1.0)
    x = torch.randn(batch_size, num_tokens, num_features).add_(0.2).mul_(magnitude[:, None])
    return {"x": x, "w": torch.randn(num_features) * 0.1 + 1, "eps": eps}


def forward_fn(x: Tensor, w: Tensor, eps: float) -> Tensor:
    """Return x / sqrt(mean(x^2) + eps) * w over the last dimension."""
    return F.rms_norm(x, w.shape, w, eps)


def backward_fn(grad_output: Tensor, x: Tensor, w: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return the gradients of x and w."""
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    normalised = x * scale
    weighted = grad_output * w
    projection = (weighted * normalised).mean(-1, keepdim=True)
    grad_x = scale * (weighted - normalised * projection)
    return grad_x, (grad_output * normalised).sum(dim=tuple(range(x.dim() - 1)))


def backward_scale(grad_output: Tensor, x: Tensor, w: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Error scales: those of the terms of x's gradient, which may cancel, in each token."""
    _, grad_w = backward_fn(grad_output, x, w, eps)
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    normalised, weighted = x * scale, grad_output * w
    size = weighted.square().mean(-1, keepdim=True).sqrt()
    projection = (weighted * normalised).square().mean(-1, keepdim=True).sqrt()
    return (
        scale * (weighted.abs() + size + normalised.abs() * projection),
        grad_w.abs() + grad_w.square().mean().sqrt(),
    )
