"""Right kernels, derived from a task's reference: what honest arithmetic gives in its own dtype.

Each family changes how operations of the reference are computed, as real kernels do. A task's bound
has to be kept by all of them on every draw; docs/bounds.md says which ways of computing are none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gpu_runner.engine.families import functions, statistics, transforms
from gpu_runner.engine.families.contractions import Instead, convolved, resummed
from gpu_runner.engine.families.sums import ORDERS
from gpu_runner.engine.operations import Change, Interpreter, Step, summed

CLAMPS = (-80.0, -87.0, -88.0)
"""Where kernels keep the argument of an exponential, so that its result is no subnormal number."""


@dataclass(frozen=True)
class Family:
    """One way of computing right results.

    instead: makes what computes a step in that way. written: what is done to a float32 result that
    is handed out in a narrower dtype, before it is rounded to nearest. unless: operations of a
    reference in which it is not honest. narrow: whether it is honest in narrow dtypes alone, which
    are computed in float32.
    """

    instead: Callable[[], Instead] | None = None
    results: Change | None = None
    written: Change | None = None
    unless: frozenset[str] = frozenset()
    narrow: bool = False

    def mode(self) -> Interpreter:
        """What a reference runs under."""
        instead = self.instead() if self.instead is not None else None
        return Interpreter(instead=instead, results=self.results)


def honest_kernels() -> Mapping[str, Family]:
    """All families by name."""
    return {
        "in parts": Family(),
        "sums backwards": _of(_backwards),
        "sums in halves": _of(_in_halves),
        **{name: _of(resummed(order)) for name, order in ORDERS.items()},
        **{name: _of(convolved(each)) for name, each in transforms.TRANSFORMS.items()},
        "Strassen's products": Family(lambda: transforms.strassen, unless=_AMPLIFYING),
        "Fourier transforms of radix two": _of(transforms.radix_two),
        **{
            f"exponents kept above {least:g}": _of(functions.exponentials(functions.clamped(least)))
            for least in CLAMPS
        },
        "exponentials by a polynomial": _of(functions.exponentials(functions.polynomial)),
        "exponentials by fast instructions": _of(functions.exponentials(functions.fast_exp)),
        "the error function by a polynomial": _of(functions.with_erf),
        "approximate quotients, roots and logarithms": _of(functions.approximate),
        "subnormal numbers flushed": Family(results=functions.flushed),
        "products contracted": Family(functions.Contracted),
        "variances in one pass": Family(lambda: statistics.one_pass, narrow=True),
        "Welford's variances": _of(statistics.welford),
        "online softmax": _of(statistics.online_softmax),
        "rounded after another error": Family(written=_another_error, narrow=True),
    }


def _of(instead: Instead) -> Family:
    return Family(lambda: instead)


_AMPLIFYING = frozenset({"_safe_softmax", "cholesky_solve", "exp", "sigmoid"})
"""What makes more of an error that is small beside the whole product, but not beside each element:
that is all that Strassen's algorithm promises."""

OTHER_ERROR = 4
"""Units in the last place of float32 by which a result may be off before it is rounded."""


def _another_error(result: Tensor) -> Tensor:
    """Off by a little in float32: what lies near the middle of two neighbours takes the other.

    A number that needs no rounding is a copy, or exact in any order.
    """
    noise = functions.noise(result) * OTHER_ERROR * torch.finfo(torch.float32).eps
    exact = result.to(torch.bfloat16) == result
    return torch.where(exact, result, result + result * noise)


_CONTRACTED = {"mm": (1, 0), "mv": (1, 0), "dot": (0, 0), "bmm": (2, 1)}  # dimensions


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
