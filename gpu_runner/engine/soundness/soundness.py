"""One step of asking whether a task is sound: every mutant and honest kernel on one call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.formats.kbench import BASELINE
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.problem import Problem
from gpu_runner.engine.soundness.families import functions, transforms
from gpu_runner.engine.soundness.families.contractions import Instead, convolved, resummed
from gpu_runner.engine.soundness.families.sums import ORDERS
from gpu_runner.engine.soundness.mutants import LARGEST, Call, Outputs, mutants_of, tried
from gpu_runner.engine.soundness.operations import Change, Interpreter, Step, summed

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
        "variances in one pass": Family(lambda: functions.one_pass, narrow=True),
        "Welford's variances": _of(functions.welford),
        "online softmax": _of(functions.online_softmax),
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
    """Off by a little in float32: what lies near the middle of two neighbors takes the other.

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


def _backwards(step: Step) -> object:
    if pair := _pair(step):
        first, second, i, j = pair
        return step.again(first.flip(i), second.flip(j))
    if step.name in ("sum", "mean"):
        dim = summed(step, step.args[0])
        return None if dim is None else step.again(step.args[0].flip(dim))
    return None


def _in_halves(step: Step) -> object:
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


MOST_WORDS = 300
"""Of what a baseline's error says."""


class Soundness:
    """Answers for one task; it keeps the last call, whose result is the next one's stale result."""

    def __init__(self, problem: Problem, device: str) -> None:
        """`device` is "cpu" or "cuda"."""
        self._problem, self._device = problem, device
        self._earlier: tuple[tuple[str, Direction], Call] | None = None

    def step(
        self, workload: Workload, direction: Direction, seed: int, settled: Collection[str]
    ) -> dict[str, Any]:
        """Try all mutants but those in `settled`, and all honest kernels, on one call.

        {"honest": {name: [scaled error, what is wrong]}, "mutants": [[name, state, scaled error]],
        "output_bytes": of one call}; a state is failed, passed, or same (see `mutants.tried`).
        """
        call = Call(self._problem, workload, direction, seed, self._device)
        key = (workload.name, direction)
        before = self._earlier[1] if self._earlier and self._earlier[0] == key else None
        found = []
        for mutant in mutants_of(call, before):
            if mutant.name not in settled:
                result = tried(mutant, call)
                if result is not None:
                    found.append([mutant.name, *result])
        self._earlier = (key, call)
        size = sum(output.numel() * output.element_size() for output in call.eager)
        return {"honest": _honest(call), "mutants": found, "output_bytes": size}


def _honest(call: Call) -> dict[str, tuple[float, str]]:
    found = {"reference": call.explain(call.eager)[1:]}
    for name, family in honest_kernels().items():
        try:
            outputs = honest_result(family, call)
        except torch.OutOfMemoryError:  # of a device: it is no kernel's way there
            continue
        if outputs is not None:
            found[name] = call.explain(outputs)[1:]
    if call.problem.has_baseline(call.direction):
        found[BASELINE] = _baseline(call)
    return found


def honest_result(family: Family, call: Call) -> Outputs | None:
    """What a kernel of that family gives; None where the reference does nothing of its kind."""
    if family.narrow and not call.is_narrow:
        return None
    if family.unless and family.unless & call.trace().operations():
        return None
    mode = family.mode()
    outputs = call.run(mode)
    if family.written is None:
        return outputs if mode.replaced or family.instead is None else None
    rounded = [
        _is_rounded(output, eager) for output, eager in zip(outputs, call.eager, strict=True)
    ]
    if not any(rounded):
        return None
    pairs = zip(outputs, rounded, strict=True)
    return tuple(family.written(output) if narrow else output for output, narrow in pairs)


def _is_rounded(output: Tensor, eager: Tensor) -> bool:
    """Whether what was computed is rounded to a narrower dtype when it is handed out."""
    return output.is_floating_point() and output.element_size() > eager.element_size()


def _baseline(call: Call) -> tuple[float, str]:
    """The task's own baseline: one that is wrong is none, and does no other harm."""
    try:
        outputs = call.own_baseline()
        if len(outputs) == len(call.expected):
            return call.explain(outputs)[1:]
    except Exception as error:  # whatever its code does wrong, and other shapes
        return LARGEST, f"{type(error).__name__}: {error}"[:MOST_WORDS]
    return LARGEST, f"gives {len(outputs)} outputs, not {len(call.expected)}"
