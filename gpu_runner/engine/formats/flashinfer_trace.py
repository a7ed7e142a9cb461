"""FlashInfer Trace's definitions as problems: inputs by their specifications, `run()` as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.formats.trace_definition import (
    CAPTURED,
    CUSTOM,
    INPUTS,
    RANDOM,
    REFERENCE,
    SCALAR,
    UUID,
    TensorSpec,
    captured_of,
    definition_of,
)
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.formats.measured import MeasuredProblem, copies
from gpu_runner.engine.formats.module import import_file, member, task_code
from gpu_runner.engine.formats.precision import NARROW, in_double
from gpu_runner.engine.problem.problem import STORED, Drawn, ProblemError, in_float64, outputs_of
from gpu_runner.engine.problem.values import varied

_INTEGERS = {"bool": (0, 2), "uint8": (0, 256), "int8": (-128, 128)}
"""The range in which random integers are drawn, the end left out. Source: flashinfer-bench 0.1.2,
`bench/utils.py`; it has no uint8."""
_OTHER_INTEGERS = (-1024, 1024)
"""The range of all other integers. Source: the same."""
_LARGEST_STORED = 2.0
"""Of a random float of eight bits. Source: the same."""


def make_problem(task: Task, folder: Path) -> FlashInferProblem:
    """Import `folder`/reference.py and return its `Problem`."""
    return FlashInferProblem(task, import_file(folder / REFERENCE, "flashinfer_reference"))


class FlashInferProblem(MeasuredProblem):
    """`run()` of a reference.py, whose arguments keep the dtypes that the definition gives them."""

    widened = NARROW

    def __init__(self, task: Task, module: ModuleType) -> None:
        super().__init__(task)
        self._module = module
        self._definition = definition_of(task.files)
        self._captured = captured_of(task.files)
        member(module, "run")

    def draw_inputs(
        self, workload: Workload, direction: Direction, seed: int, device: str
    ) -> Drawn:
        """Random tensors, and what the workload gives or the definition's own function draws."""
        axes = self._definition.extents(workload.parameters)
        given: Mapping[str, Any] = workload.parameters[INPUTS]
        kinds = {name: entry["type"] for name, entry in given.items()}
        numbers = {name: e["value"] for name, e in given.items() if e["type"] == SCALAR}
        custom: Mapping[str, Any] = {}
        if CUSTOM in kinds.values():
            entry: Any = member(self._module, str(self._definition.custom_inputs_entrypoint))
            with task_code(f"{entry.__name__}()"):
                custom = entry({**axes, **numbers}, torch.device(device))
        captured = self._tensors_of(workload) if CAPTURED in kinds.values() else {}
        found = []
        for name, spec in self._definition.inputs.items():
            shape = [axes[axis] for axis in spec.shape or ()]
            kind = kinds.get(name, RANDOM)
            if kind == CUSTOM and name not in custom:
                raise ProblemError(f"the function for custom inputs gives no {name!r}")
            known = {SCALAR: numbers, CUSTOM: custom, CAPTURED: captured}.get(kind)
            value = _random(spec, shape) if known is None else known[name]
            if kind == CAPTURED:
                value = torch.tensor(value, dtype=getattr(torch, spec.dtype)).view(shape)
            if isinstance(value, Tensor) and list(value.shape) != shape:
                raise ProblemError(f"{name} has the shape {list(value.shape)}, not {shape}")
            found.append(value.to(device) if isinstance(value, Tensor) else value)
        values = varied(tuple(found), self.task, workload, seed)
        self._check({**axes, **dict(zip(self._definition.inputs, values, strict=True))})
        return Drawn(tuple(self._definition.inputs), values)

    def as_seen(self, name: str, value: object) -> object:
        """An argument in the dtype of its own specification."""
        if not isinstance(value, Tensor):
            return value
        dtype: torch.dtype = getattr(torch, self._definition.inputs[name].dtype)
        return value.detach().to(dtype).contiguous()

    def function(self, direction: Direction) -> Callable[..., object]:
        """`run()`, with a dictionary's outputs in the order of the definition."""
        return self._run

    def expected(
        self, workload: Workload, direction: Direction, seed: int, device: str
    ) -> tuple[Tensor, ...]:
        """See `Problem.expected`; what the reference asks to be narrower stays float64, too."""
        drawn = self.draw(workload, direction, seed, device)
        with in_double(device, self.widened), task_code("run()"):
            return outputs_of(self._run(*in_float64(drawn.arguments)))

    def evaluate(self, drawn: Drawn, direction: Direction) -> tuple[Tensor, ...]:
        with task_code("run()"):
            return outputs_of(self._run(*copies(drawn.arguments)))

    def _run(self, *arguments: object) -> object:
        result = self._module.run(*arguments)
        if isinstance(result, dict):
            result = tuple(result[name] for name in self._definition.outputs)
        count = len(result) if isinstance(result, tuple | list) else 1
        if count != len(self._definition.outputs):
            wanted = len(self._definition.outputs)
            raise ProblemError(f"run() returns {count} outputs; the definition has {wanted}")
        return result

    def _tensors_of(self, workload: Workload) -> Mapping[str, Any]:
        """Captured tensors, which say where to look in tensors of the captured sizes alone."""
        uuid = workload.parameters[UUID]
        if all(workload.parameters != own.parameters for own in self.task.workloads):
            raise ProblemError("captured tensors fit only the sizes that they were captured with")
        tensors: Mapping[str, Any] = self._captured[uuid]
        return tensors

    def _check(self, names: dict[str, object]) -> None:
        """Refuse sizes that the definition's constraints exclude."""
        for constraint in self._definition.constraints:
            with task_code(f"the constraint {constraint!r}"):
                holds = eval(constraint, {"torch": torch, **names})  # noqa: S307  the jail is for it
            if not holds:
                raise ProblemError(f"the constraint {constraint!r} does not hold")


def _random(spec: TensorSpec, shape: list[int]) -> Tensor:
    """A random tensor as flashinfer-bench draws it: normal numbers, or integers of a range."""
    dtype: torch.dtype = getattr(torch, spec.dtype)
    if not dtype.is_floating_point:
        return torch.randint(*_INTEGERS.get(spec.dtype, _OTHER_INTEGERS), shape, dtype=dtype)
    values = torch.randn(shape)
    return values.clamp_(-_LARGEST_STORED, _LARGEST_STORED).to(dtype) if dtype in STORED else values
