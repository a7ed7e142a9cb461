"""The honest work of linear_relu by the framework: up to some 0.4 ms of an H100."""

from __future__ import annotations

import torch


def linear(x, weights, biases):
    """Return max(x @ weights^T + biases, 0)."""
    return torch.relu(torch.addmm(biases, x, weights.t()))
