"""Right kernels, derived from a task's reference: other orders of summation, in its own dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from gpu_runner.engine.operations import Interpreter, Step, summed

_SERIAL_PRODUCTS = 1 << 26  # multiplications that are worth doing one after the other
_CONTRACTED = {"mm": (1, 0), "mv": (1, 0), "dot": (0, 0), "bmm": (2, 1)}


def honest_kernels() -> Mapping[str, Callable[[], Interpreter]]:
    """By name, what runs a reference as an honest kernel might."""
    return {
        "in parts": Interpreter,
        "sums backwards": lambda: Interpreter(instead=_backwards),
        "sums in halves": lambda: Interpreter(instead=_in_halves),
        "sums one by one": lambda: Interpreter(instead=_one_by_one),
    }


def _pair(step: Step) -> tuple[Tensor, Tensor, int, int] | None:
    """Operands of a dense product, and the dimension of each that is summed over."""
    if step.name not in _CONTRACTED or step.args[0].layout is not torch.strided:
        return None
    return step.args[0], step.args[1], *_CONTRACTED[step.name]


def _backwards(step: Step) -> Any:
    if pair := _pair(step):
        first, second, i, j = pair
        return step.again(first.flip(i), second.flip(j))
    if step.name in ("sum", "mean"):
        dim = summed(step, step.args[0])
        return None if dim is None else step.again(step.args[0].flip(dim))
    return None


def _in_halves(step: Step) -> Any:
    if pair := _pair(step):
        first, second, i, j = pair
        size, half = first.shape[i], first.shape[i] // 2
        if half == 0:
            return None
        low = step.again(first.narrow(i, 0, half), second.narrow(j, 0, half))
        rest = size - half
        return low + step.again(first.narrow(i, half, rest), second.narrow(j, half, rest))
    if step.name == "sum":
        dim = summed(step, step.args[0])
        if dim is None or step.args[0].shape[dim] < 2:
            return None
        size, half = step.args[0].shape[dim], step.args[0].shape[dim] // 2
        low = step.again(step.args[0].narrow(dim, 0, half))
        return low + step.again(step.args[0].narrow(dim, half, size - half))
    return None


def _one_by_one(step: Step) -> Any:
    """One term after the other into one number: the least exact order, as naive kernels have it."""
    if isinstance(step.result, Tensor) and step.result.dtype is not torch.float32:
        return None
    if step.name in ("sum", "mean") and not step.result.is_cuda:
        value: Tensor = step.args[0]
        dim = summed(step, value)
        if dim is None or value.numel() // value.shape[dim] != step.result.numel():
            return None  # more than one dimension is summed over
        total = _serial_sum(value, dim).reshape(step.result.shape)
        return total / value.shape[dim] if step.name == "mean" else total
    pair = _pair(step)
    if pair is None or step.name == "bmm":
        return None
    first, second, i, j = pair
    if first.shape[i] * step.result.numel() > _SERIAL_PRODUCTS:
        return None
    return _serial_product(first.movedim(i, 0), second.movedim(j, 0), step.result)


def _serial_sum(value: Tensor, dim: int) -> Tensor:
    array = value.movedim(dim, -1).numpy()
    return torch.from_numpy(array.cumsum(axis=-1, dtype="float32")[..., -1].copy())


def _serial_product(first: Tensor, second: Tensor, result: Tensor) -> Tensor:
    if result.dim() == 0:
        return _serial_sum(first * second, 0) if not result.is_cuda else result
    total = torch.zeros_like(result)
    for left, right in zip(first, second, strict=True):
        total += left[:, None] * right if result.dim() == 2 else left * right
    return total
