"""Draw a built-in task's inputs and judge outputs against its reference, as the engine does."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.formats import catalog_specifications, load_task
from gpu_runner.data.task import Task, Values, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction
from gpu_runner.engine.problem.arguments import as_signature_says, output_names
from gpu_runner.engine.problem.compare import Comparison, Limit, compare
from gpu_runner.engine.problem.problem import (
    Drawn,
    Problem,
    exact,
    in_dtype,
    in_float64,
    load_problem,
    outputs_of,
)

Function = Callable[..., Any]


@functools.cache
def task(name: str) -> Task:
    """A built-in task by name."""
    return load_task(catalog_specifications()[name])


def folder(name: str) -> Path:
    """Where its files are."""
    return catalog_specifications()[name].parent


@functools.cache
def problem(name: str) -> Problem:
    """Its reference, imported."""
    return load_problem(task(name), folder(name))


@dataclass(frozen=True)
class Case:
    """One workload of a task in one direction, on the CPU."""

    name: str
    workload: Workload
    direction: Direction

    def __str__(self) -> str:
        return f"{self.name}-{self.direction}-{self.workload.name}"

    def draw(self, seed: int) -> Drawn:
        """The arguments of the call with that seed."""
        return problem(self.name).draw(self.workload, self.direction, seed, "cpu")

    def function(self) -> Function:
        """The reference."""
        return problem(self.name).function(self.direction)

    def judge(self, seed: int, result: Any) -> list[Comparison]:
        """Judge a kernel's result on the inputs of `seed`; one comparison an output or residual."""
        reference, key = problem(self.name), (self.workload, self.direction, seed, "cpu")
        actual = _as_written(task(self.name), outputs_of(result))
        names = output_names(task(self.name), len(actual))
        own = reference.verified(*key, dict(zip(names, actual, strict=True)))
        if own is not None:
            return [comparison for _, comparison in own]
        expected = reference.expected(*key)
        scales = reference.scale(*key, expected) or (None,) * len(expected)
        tolerance = task(self.name).tolerance
        length = task(self.name).reduction_length(self.workload)
        limit = Limit.of(tolerance.constant, tolerance.growth, length)
        return [compare(a, e, limit, s) for a, e, s in zip(actual, expected, scales, strict=True)]

    def fails(self, kernel: Function, seeds: Sequence[int] = range(8)) -> bool:
        """Does `kernel`, given the drawn arguments, fail on one of the calls?"""
        return any(not self.passes(kernel(*self.draw(seed).arguments), seed) for seed in seeds)

    def passes(self, result: Any, seed: int) -> bool:
        """Is the result of the call with that seed within the task's tolerance?"""
        return all(c.mismatch is None for c in self.judge(seed, result))


def _as_written(judged: Task, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """In the dtypes that a kernel writes: a signature names them, else it is the task's own."""
    if judged.abi is Abi.C:
        return as_signature_says(judged, outputs)
    rounded_outputs: tuple[Tensor, ...] = in_dtype(outputs, judged.dtype)
    return rounded_outputs


def exactly(function: Function) -> Function:
    """`function` in float64: what is left of its error is the function's own."""

    def run(*arguments: Any) -> Any:
        with exact("cpu"):
            return function(*in_float64(arguments))

    return run


def cases(*names: str, direction: Direction | None = None) -> list[Case]:
    """Every CPU workload of the tasks, hidden ones too, in every direction or the given one.

    Public ones come with hard values as well, where the task draws such.
    """
    return [case for name in names for case in _cases(name) if direction in (None, case.direction)]


def drawn_cases(*names: str, direction: Direction | None = None) -> list[Case]:
    """The same without workloads whose values are of a special family.

    Of integers, say, low precision loses nothing; what fails there is for `mutants` to find out.
    """
    found = cases(*names, direction=direction)
    return [case for case in found if case.workload.values is Values.DRAWN]


def _cases(name: str) -> Iterator[Case]:
    for direction in task(name).directions:
        for workload in task(name).workloads_for(DeviceKind.CPU, direction, hidden=True):
            yield Case(name, workload, direction)
            if task(name).has_hard_inputs and not workload.hidden:
                hard = replace(workload, name=f"{workload.name}_hard", values=Values.HARD)
                yield Case(name, hard, direction)


def rounded(bits: int) -> Callable[[Any], Any]:
    """A function that rounds a float32 tensor to `bits` bits of mantissa, half to even."""
    drop = 23 - bits

    def change(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        raw = value.contiguous().view(torch.int32)
        odd = (raw >> drop) & 1
        return ((raw + (1 << (drop - 1)) - 1 + odd) & ~((1 << drop) - 1)).view(torch.float32)

    return change


def half_precision(value: Any) -> Any:
    """A float32 tensor rounded to float16, with its overflow."""
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.half().float()
    return value


PRECISIONS: dict[str, Callable[[Any], Any]] = {
    "tf32": rounded(10),
    "bf16": rounded(7),
    "fp16": half_precision,
}
