"""Find out how long the sums are that a reference computes, by watching its operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gpu_runner.engine.problem.arguments import leaves
from gpu_runner.engine.problem.problem import ProblemError

_SHORT = 4096
"""No sane kernel sums more terms than this into one float32 one after the other, products apart."""
_LONG = 65536  # chosen: of a batch no sane kernel sums more into one float32
_AT_MOST_TIMES_LONGEST = 16  # chosen: errors of many sums partly cancel
_PRODUCTS = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "linear", "mkldnn_linear"), 0),
    **dict.fromkeys(("addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation"), 1),
}
"""Operation -> position of the argument whose last dimension is summed over."""
_ALONG = {"_softmax", "_log_softmax", "cumsum", "cumprod", "logcumsumexp"}
_SUMS = ("sum", "mean", "var", "std", "norm", "prod", "avg_pool", "loss", "_backward", "trace")
_RANDOM = {
    "native_dropout", "bernoulli", "bernoulli_", "rand", "randn", "rand_like", "randn_like",
    "randint", "randint_like", "randperm", "normal", "normal_", "uniform_", "multinomial",
    "exponential_", "random_", "rrelu_with_noise", "poisson", "normal_functional", "_fused_dropout",
}  # fmt: skip


class Lengths(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, notes the lengths of all sums, and refuses random numbers.

    `total`: what stands for the reduction length in a `Tolerance`. Rounding errors of one
    operation after the other add up like their squares do, so the lengths add up.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._lengths: list[float] = [1.0]

    @property
    def total(self) -> float:
        """Sum of the lengths, at most a few times the longest one."""
        return min(sum(self._lengths), _AT_MOST_TIMES_LONGEST * max(self._lengths))

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        name = str(getattr(func, "overloadpacket", func)).rpartition(".")[2]
        if name in _RANDOM:
            raise ProblemError(f"the reference is random: it calls {name}, so nothing can match it")
        length = _length(name, args, result)
        if length > 1:
            self._lengths.append(length)
        return result


def _length(name: str, args: tuple[Any, ...], result: Any) -> float:
    """Number of terms that an element of `result` sums up, 1 where it sums nothing."""
    if name in _PRODUCTS:
        return float(args[_PRODUCTS[name]].shape[-1])
    if name == "convolution_backward":
        gradient, weight = args[0], args[2]
        over_batch = gradient.numel() / gradient.shape[1]
        return float(min(max(over_batch, weight.numel() / weight.shape[1]), _LONG))
    if "convolution" in name and len(args) > 1:
        return _convolution(args)
    if name in _ALONG:
        return min(float(args[0].shape[args[1]]) if args[0].dim() else 1.0, _SHORT)
    if "scaled_dot_product" in name:
        return float(args[0].shape[-1] + min(args[1].shape[-2], _SHORT))
    if any(word in name for word in _SUMS):
        return _ratio(args, result)
    return 1.0


def _convolution(args: tuple[Any, ...]) -> float:
    weight: Tensor = args[1]
    transposed = len(args) > 6 and args[6] is True
    if not transposed:
        return weight.numel() / weight.shape[0]
    groups = args[8] if len(args) > 8 else 1
    return weight.shape[0] / groups * math.prod(weight.shape[2:])


def _ratio(args: tuple[object, ...], result: object) -> float:
    """Elements of the largest argument for each one of the smallest result (means, say)."""
    largest = max((tensor.numel() for tensor in leaves(args)), default=0)
    smallest = min((t.numel() for t in leaves(result) if t.numel()), default=0)
    return min(largest / smallest, _SHORT) if smallest else 1.0


def traced(function: Callable[[], object]) -> tuple[object, float]:
    """The function's result, and the total length of its sums."""
    lengths = Lengths()
    with lengths:
        result = function()
    return result, lengths.total


def bound_factor(constant: float, growth: float, length: float) -> float:
    """Allowed error in units in the last place; see `Tolerance`."""
    return constant + growth * math.sqrt(length)


def epsilon(dtype: torch.dtype) -> float:
    """Machine epsilon of a floating-point dtype."""
    return float(torch.finfo(dtype).eps)
