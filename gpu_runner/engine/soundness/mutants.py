"""Wrong kernels, derived from a task's reference: each must fail, or the task is not sound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.engine.formats.measured import MeasuredProblem
from gpu_runner.engine.formats.precision import in_double
from gpu_runner.engine.problem.arguments import as_signature_says, output_names
from gpu_runner.engine.problem.compare import Comparison, WrongElement, compare, limit_of
from gpu_runner.engine.problem.problem import (
    Problem,
    ProblemError,
    exact,
    in_dtype,
    in_float64,
    outputs_of,
)
from gpu_runner.engine.soundness.operations import Change, Edit, Interpreter, floats

Outputs = tuple[Tensor, ...]
LARGEST = 1e300  # stands for an infinite error: JSON has no infinity
_WIDE = {"float16": "float32", "bfloat16": "float32"}
"""The dtype in which kernels of a task compute what they hand out in a narrower one."""


class Call:
    """One call of a task's reference: its inputs, what is expected, and how it is judged."""

    def __init__(
        self, problem: Problem, workload: Workload, direction: Direction, seed: int, device: str
    ) -> None:
        """Draw the call's inputs and compute what is expected."""
        task = problem.task
        self._key = key = (workload, direction, seed, device)
        self.has_verifier = problem.has_verifier(direction)
        self.problem, self.task, self.direction, self.device = problem, task, direction, device
        self.workload = workload
        self.drawn = problem.draw(*key)
        self.expected = problem.expected(*key)
        scales = problem.scale(*key, self.expected)
        self._scales = scales or (None,) * len(self.expected)
        self._limit = limit_of(task, workload)
        self.eager = as_signature_says(task, self._in_its_dtype(problem.function(direction)))
        self._plain: Outputs = ()
        self._trace: Interpreter | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether kernels compute in a wider dtype than the task's own."""
        return self.task.real_dtype in _WIDE

    def run(
        self,
        mode: Interpreter,
        *,
        exactly: bool = False,
        inputs: Change | None = None,
        arguments: Sequence[object] = (),
    ) -> Outputs:
        """The reference under `mode`, in float64 or in the dtype that a kernel computes in.

        inputs: applied to the floating ones before. arguments: instead of those that were drawn.
        """
        chosen = list(arguments or self.drawn.arguments)
        if inputs is not None:
            chosen = floats(inputs, chosen)
        if exactly:
            with self._in_float64():
                return self._run(in_float64(chosen), mode)
        return self._run(in_dtype(chosen, _WIDE.get(self.task.dtype, self.task.dtype)), mode)

    def judge(self, outputs: Outputs) -> tuple[bool, float]:
        """Whether the outputs fail, and their largest scaled error (at most 1e300)."""
        failed, scaled, _ = self.explain(outputs)
        return failed, scaled

    def explain(self, outputs: Outputs) -> tuple[bool, float, str]:
        """The same, and where the first output that fails is wrong; empty if none does."""
        results = self._results(outputs)
        largest = min(max(result.scaled for _, result in results), LARGEST)
        for name, result in results:
            if result.mismatch is not None:
                return True, largest, f"{name}{_place(result.mismatch)}"
        return False, largest, ""

    def share(self, index: int, output: Tensor) -> float:
        """Share of an output's elements for which those of `output` would pass.

        A verifier has no elements: all of them, or none, beside the other expected outputs.
        """
        if self.has_verifier:
            others = list(self.expected)
            others[index] = output
            return 0.0 if self.judge(tuple(others))[0] else 1.0
        result = self.compared(index, output)
        wrong = 0 if result.mismatch is None else result.mismatch.wrong_elements
        return 1 - wrong / max(1, self.expected[index].numel())

    def _results(self, outputs: Outputs) -> list[tuple[str, Comparison]]:
        names = output_names(self.task, len(outputs))
        if not self.has_verifier:
            compared = [self.compared(index, output) for index, output in enumerate(outputs)]
            return list(zip(names, compared, strict=True))
        if [o.shape for o in outputs] != [e.shape for e in self.eager]:
            raise ValueError("the outputs have different shapes")
        seen = [self._written(index, output) for index, output in enumerate(outputs)]
        own = self.problem.verified(*self._key, dict(zip(names, seen, strict=True)))
        assert own is not None, "it has a verifier"
        return own

    def compared(self, index: int, output: Tensor) -> Comparison:
        """An output as a kernel would hand it out, beside the expected one."""
        seen = self._written(index, output)
        return compare(seen, self.expected[index], self._limit, self._scales[index])

    def _written(self, index: int, output: Tensor) -> Tensor:
        """An output as a kernel would hand it out."""
        return output.to(self.eager[index].dtype)

    def is_reference(self, outputs: Outputs) -> bool:
        """Whether float64 outputs are the reference's, taken apart or not, to the last bit."""
        self.trace()
        return _equal(outputs, self._plain) or _equal(outputs, self.expected)

    def trace(self) -> Interpreter:
        """What the reference does, operation by operation, in float64."""
        if self._trace is None:
            self._trace = Interpreter()
            self._plain = self.run(self._trace, exactly=True)
        return self._trace

    def own_baseline(self) -> Outputs:
        """What the task's own baseline gives; call it only if there is one."""
        return self._in_its_dtype(self.problem.baseline(self.direction))

    def _in_its_dtype(self, function: Callable[..., object]) -> Outputs:
        arguments: Any = list(self.drawn.arguments)
        if self.task.abi is Abi.C:  # others are as they are seen, of several dtypes perhaps
            arguments = in_dtype(arguments, self.task.dtype)
        with torch.no_grad(), torch.device(self.device):
            return outputs_of(function(*_copied(arguments)))

    def _run(self, arguments: list[object], mode: Interpreter) -> Outputs:
        function = self.problem.function(self.direction)
        # In a narrower dtype attention would be one operation, without those of float64.
        with torch.no_grad(), torch.device(self.device), sdpa_kernel(SDPBackend.MATH), mode:
            return outputs_of(function(*_copied(arguments)))

    def _in_float64(self) -> AbstractContextManager[None]:
        if isinstance(self.problem, MeasuredProblem):
            return in_double(self.device, self.problem.widened)
        return exact(self.device)


def _copied(arguments: Sequence[Any]) -> list[Any]:
    return [a.clone() if isinstance(a, Tensor) else a for a in arguments]


def _place(wrong: WrongElement) -> str:
    if not wrong.index:
        return f": {wrong.reason}"
    at = ", ".join(map(str, wrong.index))
    return f"[{at}]: {wrong.reason}; {wrong.wrong_elements} of {wrong.elements} are wrong"


def _equal(outputs: Outputs, others: Outputs) -> bool:
    return all(
        a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(outputs, others, strict=True)
    )


@dataclass(frozen=True)
class Mutant:
    """A wrong kernel. `run` gives its outputs; `exactly` asks for them in float64."""

    name: str
    run: Callable[[Call, bool], Outputs]


def mutants_of(call: Call, earlier: Call | None) -> Iterator[Mutant]:
    """All mutants that the reference has on this call; `earlier` is a call of the same workload."""
    trace = call.trace()
    yield from _output_mutants(call, earlier)
    yield from _precision_mutants(call, products=trace.products > 0)
    for edit in dict.fromkeys(trace.edits):
        yield Mutant(str(edit), partial(_edited, edit))


def _edited(edit: Edit, call: Call, exactly: bool) -> Outputs:  # noqa: FBT001
    mode = Interpreter(edit)
    outputs = call.run(mode, exactly=exactly)
    if not mode.edited:  # edits are those of float64; another dtype may be computed otherwise
        raise LookupError(f"no such operation here: {edit}")
    return outputs


def _output_mutants(call: Call, earlier: Call | None) -> Iterator[Mutant]:
    for index, output in enumerate(call.expected):
        several = f" in output {index + 1}" if len(call.expected) > 1 else ""
        changes: dict[str, Change] = {**_CHANGES, **_echoes(call, output)}
        if call.has_verifier:
            changes |= _UNUSUAL if output.is_floating_point() else _WHOLE
        if earlier is not None and earlier.expected[index].shape == output.shape:
            changes["the result of an earlier call"] = _always(earlier.expected[index])
        for name, change in changes.items():
            if not output.is_floating_point() and name in _FOR_FLOATS:
                continue
            yield Mutant(name + several, partial(_one_wrong, index, change))


def _one_wrong(index: int, change: Change, call: Call, _: bool) -> Outputs:  # noqa: FBT001
    wrong = change(call.expected[index].clone())
    return (*call.expected[:index], wrong, *call.expected[index + 1 :])


def _echoes(call: Call, output: Tensor) -> dict[str, Change]:
    pairs = zip(call.drawn.names, call.drawn.arguments, strict=True)
    return {
        f"the input {name} echoed": _always(value.to(output.dtype))
        for name, value in pairs
        if isinstance(value, Tensor) and value.shape == output.shape
    }


def _always(output: Tensor) -> Change:
    return lambda _: output


def _cut(dim: int, count: Callable[[int], int]) -> Change:
    """Zeros in the last `count(size)` places of a dimension."""

    def change(output: Tensor) -> Tensor:
        flat = output.reshape(-1) if output.dim() == 0 else output
        size = flat.shape[dim]
        flat.narrow(dim, size - min(count(size), size), min(count(size), size)).zero_()
        return output

    return change


def _flat(change: Change) -> Change:
    return lambda output: change(output.reshape(-1)).reshape(output.shape)


def _turned(output: Tensor) -> Tensor:
    if output.dim() < 2:
        return output.flip(0) if output.dim() else output
    return output.transpose(-1, -2).reshape(output.shape)


def _mean(output: Tensor) -> Tensor:
    return torch.full_like(output, output[torch.isfinite(output)].mean().item())


def _rolled(dim: int) -> Change:
    return lambda output: output.roll(1, min(dim, output.dim() - 1)) if output.dim() else output


_CHANGES: dict[str, Change] = {
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "the mean of the result everywhere": _mean,
    "the opposite sign": torch.neg,
    "transposed": _turned,
    "in reverse order": _flat(lambda o: o.flip(0)),
    "off by one element": _flat(_rolled(0)),
    "off by one row": _rolled(0),
    "off by one column": lambda o: o.roll(1, -1) if o.dim() else o,
    "last element left out": _flat(_cut(0, lambda _: 1)),
    "last row left out": _cut(0, lambda _: 1),
    "last column left out": _cut(-1, lambda _: 1),
    "last percent left out": _flat(_cut(0, lambda size: max(1, size // 100))),
    "second half left out": _flat(_cut(0, lambda size: size // 2)),
    "only the last row": lambda o: o - _cut(0, lambda _: 1)(o.clone()),
    "half the value": lambda o: o / 2,
}


def _set(flat: Tensor, at: int, value: float) -> Tensor:
    if flat.numel():
        flat[at] = value
    return flat


def _largest(output: Tensor) -> Tensor:
    is_bool = output.dtype is torch.bool
    return torch.full_like(output, 1 if is_bool else torch.iinfo(output.dtype).max)


_UNUSUAL: dict[str, Change] = {
    "NaN everywhere": lambda o: torch.full_like(o, torch.nan),
    "NaN as the last element": _flat(lambda o: _set(o, -1, torch.nan)),
    "infinity everywhere": lambda o: torch.full_like(o, torch.inf),
    "very large numbers": lambda o: torch.full_like(o, 1e30),
}
_WHOLE: dict[str, Change] = {
    "-1 everywhere": lambda o: torch.full_like(o, -1),
    "the largest number everywhere": _largest,
    "one more": lambda o: (o + 1).to(o.dtype),
}
"""What a verifier has to refuse, and not to fail at: comparisons do so by themselves."""
_FOR_FLOATS = {"the mean of the result everywhere", "the opposite sign", "half the value"}


def _rounded(bits: int) -> Change:
    """Round to `bits` bits of mantissa behind the leading one, half to even."""
    drop = 52 - bits

    def change(value: Tensor) -> Tensor:
        raw = value.double().contiguous().view(torch.int64)
        odd = (raw >> drop) & 1
        near = (raw + ((1 << (drop - 1)) - 1) + odd) & ~((1 << drop) - 1)
        wide = value.double()
        return torch.where(torch.isfinite(wide), near.view(torch.float64), wide).to(value.dtype)

    return change


def _through(dtype: torch.dtype) -> Change:
    return lambda value: value.to(dtype).to(value.dtype)


_PRECISIONS: dict[str, dict[str, Change]] = {
    "float64": {"FP32": _through(torch.float32)},
    "float32": {
        "TF32": _rounded(10),
        "BF16": _through(torch.bfloat16),
        "FP16": _through(torch.float16),
    },
    "float16": {"FP8": _rounded(3)},
    "bfloat16": {"FP8": _rounded(3)},
    "float8_e4m3fn": {"two bits of mantissa": _rounded(2)},
    "float8_e5m2": {"one bit of mantissa": _rounded(1)},
}
"""For each dtype the ones of one step less precision; all else is computed in float64."""


def _precision_mutants(call: Call, *, products: bool) -> Iterator[Mutant]:
    for name, change in _PRECISIONS.get(call.task.real_dtype, {}).items():
        yield Mutant(f"inputs in {name}", partial(_rounding, "inputs", change))
        yield Mutant(f"everything in {name}", partial(_rounding, "everything", change))
        if products:
            yield Mutant(f"products in {name}", partial(_rounding, "products", change))


def _rounding(what: str, change: Change, call: Call, _: bool) -> Outputs:  # noqa: FBT001
    inputs = change if what != "products" else None
    mode = Interpreter(
        operands=change if what != "inputs" else None,
        results=change if what == "everything" else None,
    )
    return call.run(mode, exactly=True, inputs=inputs)


def tried(mutant: Mutant, call: Call) -> tuple[str, float] | None:
    """What becomes of a mutant on a call: failed, passed or same, with its scaled error.

    None where it cannot be run. "same": it passes and is the reference itself, bit by bit.
    """
    try:
        failed, scaled = call.judge(mutant.run(call, False))
        if failed:
            return "failed", scaled
        same = call.is_reference(mutant.run(call, True))
    except (ProblemError, torch.OutOfMemoryError):
        raise
    except Exception:  # a mutant may make no sense at all: then it is no kernel
        return None
    return ("same" if same else "passed"), scaled
