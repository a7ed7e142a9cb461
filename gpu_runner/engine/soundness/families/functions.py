"""Exponentials, logarithms, quotients, roots, variances and softmaxes as fast kernels have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from gpu_runner.engine.soundness.families.contractions import Instead, at_the_end, freedom, reduced
from gpu_runner.engine.soundness.families.sums import in_lanes
from gpu_runner.engine.soundness.operations import Step

Function = Callable[[Tensor], Tensor]

_INFO = torch.finfo(torch.float32)
_LOG2_E = 1.44269504  # in float32, as kernels write it
_ULP = _INFO.eps / 2  # of a number just below a power of two, over it
MOST_STEPS = 512  # of a running maximum
Moments = tuple[int, Tensor, Tensor]


def clamped(least: float) -> Function:
    """exp of an argument that is kept at `least` or above, so that the result is no subnormal.

    That of minus infinity is zero: it stands for what a mask hides, which no kernel adds.
    """
    return lambda x: torch.exp(x.clamp(min=least)).masked_fill(x == -math.inf, 0.0)


def flushed(x: Tensor) -> Tensor:
    """`x` with subnormal numbers as zeros."""
    return torch.where(x.abs() < _INFO.smallest_normal, x * 0, x)


def polynomial(x: Tensor) -> Tensor:
    """exp by a polynomial of degree five, about two units in the last place off; 0 far down.

    The argument is reduced by multiples of log(2) in two parts, as Cody and Waite have it.
    """
    kept = x.clamp(-87.0, 88.0)
    power = torch.round(kept * _LOG2_E)
    rest = kept - power * 0.693359375
    rest = rest - power * -2.12194440e-4
    value = torch.full_like(rest, 0.00829765479)
    for factor in (0.041915382, 0.166675747, 0.499988949, 0.999999692, 1.00000007):
        value = value * rest + factor
    value = torch.ldexp(value, power)
    return torch.where(x > 88.0, math.inf, torch.where(x < -87.0, 0.0, value)).where(~x.isnan(), x)


def fast_exp(x: Tensor) -> Tensor:
    """As __expf of CUDA: a power of two of the rounded x * log2(e), off by 2 ulp more at most."""
    return flushed(_off(torch.exp2(x * _LOG2_E), 2))


def fast_log(x: Tensor) -> Tensor:
    """As __logf of CUDA: off by 2^-21.4 around 1, and by 3 ulp elsewhere."""
    result = torch.log(x)
    near = (x > 0.5) & (x < 2)
    return torch.where(near, result + 2**-21.4 * noise(x), _off(result, 3))


def fast_power(base: Any, exponent: Any) -> Tensor:
    """As __powf of CUDA: exp2(exponent * log2(base)), which loses what the product is large."""
    first = base if isinstance(base, Tensor) else torch.as_tensor(base, dtype=torch.float32)
    return _off(torch.exp2(torch.log2(first) * exponent), 2)


def _off(value: Tensor, ulps: float) -> Tensor:
    """`value` off by up to so many units in the last place, the same for the same value."""
    return value * (1 + _ULP * ulps * 2 * noise(value))


def noise(value: Tensor) -> Tensor:
    """A number in [-1, 1) that the bits of each element decide, and that looks random."""
    bits = value.float().contiguous().view(torch.int32).to(torch.int64)
    mixed = (bits * 0x9E3779B1) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x85EBCA6B) & 0xFFFFFFFF
    return ((mixed >> 8).double() / 2**23 - 1).float()


def exponentials(exp: Function) -> Instead:
    """Whatever a reference takes an exponential for, by way of that one."""
    return by_name(
        {
            "_safe_softmax": lambda step: _softmax(step, exp),
            "elu": lambda step: _elu(step, exp),
            "exp": lambda step: exp(step.args[0]),
            "sigmoid": lambda step: 1 / (1 + exp(-step.args[0])),
            "tanh": lambda step: 1 - 2 / (exp(2 * step.args[0]) + 1),
        }
    )


def by_name(functions: Mapping[str, Callable[[Step], object]]) -> Instead:
    """Those operations of a float32 result that are named."""

    def instead(step: Step) -> object:
        function = functions.get(step.name)
        real = isinstance(step.result, Tensor) and step.result.dtype is torch.float32
        return function(step) if function is not None and real else None

    return instead


def _softmax(step: Step, exp: Function) -> Tensor:
    value, dim = step.args[:2]
    powers = exp(value - value.amax(dim, keepdim=True))
    return (powers / powers.sum(dim, keepdim=True)).nan_to_num(0.0)  # rows that see nothing


def _elu(step: Step, exp: Function) -> Tensor:
    x, alpha, scale, inner = (*step.args, 1, 1, 1)[:4]
    return torch.where(x > 0, x * scale, (exp(x * inner) - 1) * (alpha * scale))


def _erf(step: Step) -> Tensor:
    """By Abramowitz and Stegun 7.1.26, off by 1.5e-7."""
    x = step.args[0].abs()
    t = 1 / (1 + 0.3275911 * x)
    value = torch.full_like(t, 1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        value = value * t + factor
    return torch.copysign(1 - value * t * polynomial(-x * x), step.args[0])


def _quotient(step: Step) -> Tensor | None:
    if step.kwargs:
        return None  # one that is rounded to an integer
    value: Tensor = step.args[0]
    return value * _off(torch.as_tensor(1 / step.args[1], dtype=torch.float32), 2)


approximate = by_name(
    {
        "div": _quotient,
        "log": lambda step: fast_log(step.args[0]),
        "pow": lambda step: fast_power(step.args[0], step.args[1]) if _real_power(step) else None,
        "reciprocal": lambda step: _off(step.result, 2),
        "rsqrt": lambda step: _off(step.result, 2),
        "sqrt": lambda step: _off(step.result, 2),
    }
)
"""Quotients, roots, logarithms and powers as the approximate instructions of GPUs give them."""


def _real_power(step: Step) -> bool:
    """Of a positive base with an exponent that is no small integer, which is multiplied out."""
    return not isinstance(step.args[0], Tensor) and isinstance(step.args[1], Tensor)


with_erf = by_name({"erf": _erf})


class Contracted:
    """Products that are added to something unrounded, as compilers contract a * b + c."""

    def __init__(self) -> None:
        self._exact = WeakTensorKeyDictionary()

    def __call__(self, step: Step) -> object:
        result = step.result
        if not isinstance(result, Tensor) or result.dtype is not torch.float32:
            return None
        if step.name == "mul" and all(isinstance(each, Tensor) for each in step.args):
            self._exact[result] = step.args[0].double() * step.args[1].double()
        if step.name == "addcmul":
            first, left, right = step.args
            product = left.double() * right.double() * step.kwargs.get("value", 1)
            return (first.double() + product).float()
        return self._sum(step) if step.name in ("add", "sub") else None

    def _sum(self, step: Step) -> Tensor | None:
        first, second = step.args
        sign = step.kwargs.get("alpha", 1) * (1 if step.name == "add" else -1)
        exact: Tensor | None = None
        if isinstance(first, Tensor) and first in self._exact:
            exact = self._exact[first] + sign * _wide(second)
        elif isinstance(second, Tensor) and second in self._exact:
            exact = _wide(first) + sign * self._exact[second]
        return None if exact is None else exact.float()


def _wide(value: object) -> object:
    return value.double() if isinstance(value, Tensor) else value


def one_pass(step: Step) -> object:
    """A variance as the mean of the squares, less the square of the mean."""
    terms = _terms(step)
    if terms is None:
        return None
    size = terms.shape[-1]
    mean = in_lanes(terms) / size
    squares = (in_lanes(terms * terms) / size - mean * mean).clamp(min=0)
    return _as_result(step, squares, mean)


def welford(step: Step) -> object:
    """Welford's running mean and squares in lanes, which are merged as Chan and others have it."""
    terms = _terms(step)
    if terms is None:
        return None
    size = terms.shape[-1]
    lanes = math.ceil(size / MOST_STEPS)
    whole = size // lanes * lanes
    rows = terms[..., :whole].reshape(*terms.shape[:-1], -1, lanes).movedim(-2, 0)
    mean, squares = torch.zeros_like(rows[0]), torch.zeros_like(rows[0])
    for count, value in enumerate(rows, start=1):
        before = value - mean
        mean = mean + before / count
        squares = squares + before * (value - mean)
    found = [(whole // lanes, mean[..., i], squares[..., i]) for i in range(lanes)]
    found += [(1, terms[..., i], torch.zeros_like(terms[..., i])) for i in range(whole, size)]
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=False)
        found = [_merged(*pair) for pair in pairs] + found[len(found) - len(found) % 2 :]
    _, mean, squares = found[0]
    return _as_result(step, squares / size, mean)


def _merged(first: Moments, second: Moments) -> Moments:
    (n, mean, squares), (m, other, others) = first, second
    apart = other - mean
    return (
        n + m,
        mean + apart * (m / (n + m)),
        squares + others + apart * apart * (n * m / (n + m)),
    )


def _terms(step: Step) -> Tensor | None:
    """What a variance in float32 is of."""
    if step.name != "var_mean" or step.result[0].dtype is not torch.float32:
        return None
    terms = at_the_end(step.args[0], reduced(step))
    return terms if terms.shape[-1] else None


def _as_result(step: Step, variance: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    size = step.args[0].numel() // mean.numel()
    variance = variance * (size / freedom(step, size))
    return variance.reshape(step.result[0].shape), mean.reshape(step.result[1].shape)


def online_softmax(step: Step) -> object:
    """A softmax whose sum is scaled anew whenever a part has a larger maximum."""
    if step.name not in ("_softmax", "_log_softmax", "_safe_softmax"):
        return None
    value, dim = step.args[0], step.args[1]
    if value.dtype is not torch.float32 or not value.numel():
        return None
    rows = value.movedim(dim, -1)
    largest, total = _running(rows)
    if step.name == "_log_softmax":
        return ((rows - largest) - torch.log(total)).movedim(-1, dim)
    result = (torch.exp(rows - largest) / total).movedim(-1, dim)
    return result.nan_to_num(0.0) if step.name == "_safe_softmax" else result


def _running(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The largest element of each row, and the sum of exponentials below it (..., 1)."""
    size = math.ceil(rows.shape[-1] / MOST_STEPS)
    padded = F.pad(rows, (0, -rows.shape[-1] % size), value=-math.inf)
    parts = padded.reshape(*rows.shape[:-1], -1, size)
    largest = torch.full_like(rows[..., :1], torch.finfo(torch.float32).min)
    total = torch.zeros_like(largest)
    for part in parts.movedim(-2, 0):
        new = torch.maximum(largest, part.amax(-1, keepdim=True))
        total = total * torch.exp(largest - new) + torch.exp(part - new).sum(-1, keepdim=True)
        largest = new
    return largest, total
