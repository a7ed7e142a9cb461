"""KernelBench problem files as problems: Model's inputs and weights become arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.formats.measured import MeasuredProblem, copies
from gpu_runner.engine.formats.module import import_file, member, task_code
from gpu_runner.engine.formats.precision import in_double
from gpu_runner.engine.problem import Drawn, in_float64, outputs_of
from gpu_runner.engine.values import varied


def make_problem(task: Task, folder: Path) -> KernelBenchProblem:
    """Import the task's only file and return its `Problem`."""
    (name,) = task.files
    return KernelBenchProblem(task, import_file(folder / name, "kernelbench_problem"))


InitValues = tuple[Any, ...]
"""What get_init_inputs() gives."""


@dataclass(frozen=True)
class Layout:
    """Where the arguments come from: `inputs` values of get_inputs(), then these by name."""

    inputs: int
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    attributes: tuple[str, ...]

    @property
    def states(self) -> tuple[str, ...]:
        """Names of what `functional_call` replaces."""
        return self.parameters + self.buffers


class KernelBenchProblem(MeasuredProblem):
    """Model, get_inputs and get_init_inputs of one module."""

    def __init__(self, task: Task, module: ModuleType) -> None:
        super().__init__(task)
        self._module = module
        for name in ("Model", "get_inputs", "get_init_inputs"):
            member(module, name)
        self._frame: tuple[nn.Module, Layout, InitValues] | None = None

    def draw_inputs(
        self,
        workload: Workload,
        direction: Direction,
        seed: int,
        device: str,
    ) -> Drawn:
        """A new Model with random weights, then get_inputs() with the workload's sizes."""
        with task_code("the task's code"):
            values, model = self._make()
            inputs = self._inputs(workload)
        model = model.to(device)  # weights that it made from numpy, say
        inputs = tuple(v.to(device) if isinstance(v, Tensor) else v for v in inputs)
        inputs = varied(inputs, self.task, workload, seed)
        layout = _layout(model, len(inputs))
        states = model.state_dict(keep_vars=True)
        attributes = [_read(model, name) for name in layout.attributes]
        names = [*_input_names(model, len(inputs)), *layout.states, *layout.attributes]
        numbers = [(n, v) for n, v in _named(type(model).__init__, values) if _is_number(v)]
        numbers = [(f"init.{name}" if name in names else name, value) for name, value in numbers]
        tensors = [states[name].detach() for name in layout.states]
        self._keep(model, layout, values)
        return Drawn(
            (*names, *(name for name, _ in numbers)),
            (*inputs, *tensors, *attributes, *(value for _, value in numbers)),
        )

    def function(self, direction: Direction) -> Callable[..., Any]:
        """Model's forward with the arguments put in the place of its weights."""
        if self._frame is None:
            with torch.no_grad(), task_code("the task's code"):
                values, model = self._make()
                count = len(self._inputs(self.task.workloads[-1]))  # often the smallest
            self._keep(model, _layout(model, count), values)
        assert self._frame is not None
        return Forward(*self._frame, self._other)

    def expected(
        self, workload: Workload, direction: Direction, seed: int, device: str
    ) -> tuple[Tensor, ...]:
        """See `Problem.expected`."""
        drawn = self.draw(workload, direction, seed, device)
        with in_double(device), task_code("Model.forward"):
            return outputs_of(self.function(direction)(*in_float64(drawn.arguments)))

    def evaluate(self, drawn: Drawn, direction: Direction) -> tuple[Tensor, ...]:
        """See `MeasuredProblem.evaluate`."""
        with task_code("Model.forward"):
            return outputs_of(self.function(direction)(*copies(drawn.arguments)))

    def _inputs(self, workload: Workload) -> tuple[Any, ...]:
        """get_inputs(), which sees the workload's parameters in the place of the module's sizes."""
        sizes = {
            name: size if isinstance(size, int) else tuple(size)
            for name, size in workload.parameters.items()
        }
        own = {name: member(self._module, name) for name in sizes}
        try:
            vars(self._module).update(sizes)
            return tuple(self._module.get_inputs())
        finally:
            vars(self._module).update(own)

    def _make(self, values: InitValues | None = None) -> tuple[InitValues, nn.Module]:
        if values is None:
            values = tuple(self._module.get_init_inputs())
        model: nn.Module = self._module.Model(*values)
        for part in model.modules():
            if isinstance(part, _DropoutNd):
                part.eval()  # a random reference could not be matched
            elif isinstance(part, _NormBase):
                part.momentum = 0.0  # the same work, and running statistics stay as they are
            elif isinstance(part, nn.RNNBase | nn.MultiheadAttention):
                part.dropout = 0.0
        return values, model

    def _other(self, values: InitValues) -> nn.Module:
        """The model that these values make in place of get_init_inputs()'s, without its weights."""
        _, model = self._make(values)
        return _bare(model)

    def _keep(self, model: nn.Module, layout: Layout, values: InitValues) -> None:
        """Keep the model without its weights, for `function`."""
        self._frame = (_bare(model), layout, values)


def _bare(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for part in model.modules():
            for name, tensor in part._parameters.items():
                if tensor is not None:
                    part._parameters[name] = nn.Parameter(tensor.to("meta"), requires_grad=False)
            for name, buffer in part._buffers.items():
                if buffer is not None and buffer.is_floating_point():
                    part._buffers[name] = buffer.to("meta")
    return model


class Forward:
    """`Model.forward` as a function of everything that it reads."""

    def __init__(
        self,
        model: nn.Module,
        layout: Layout,
        values: InitValues,
        other: Callable[[InitValues], nn.Module],
    ) -> None:
        """`values` made the model; `other` makes one of other values."""
        self._model, self._layout, self._values, self._other = model, layout, values, other

    def __call__(self, *arguments: Any) -> Any:
        """Outputs of the model; takes `Drawn.arguments`."""
        layout = self._layout
        inputs = arguments[: layout.inputs]
        states = arguments[layout.inputs : layout.inputs + len(layout.states)]
        rest = arguments[layout.inputs + len(states) :]
        attributes, numbers = rest[: len(layout.attributes)], rest[len(layout.attributes) :]
        model = self._model_of(numbers)
        self._settle(model, arguments)
        for name, value in zip(layout.attributes, attributes, strict=True):
            _write(model, name, value)
        state = dict(zip(layout.states, states, strict=True))
        return torch.func.functional_call(model, state, inputs)

    def _model_of(self, numbers: tuple[Any, ...]) -> nn.Module:
        """The model, or where a number is another one, a model that is made with it.

        Without numbers, the model as it is: callers may leave them out.
        """
        if not numbers or numbers == tuple(value for value in self._values if _is_number(value)):
            return self._model
        rest = iter(numbers)
        return self._other(tuple(next(rest) if _is_number(v) else v for v in self._values))

    def _settle(self, model: nn.Module, arguments: tuple[Any, ...]) -> None:
        """Bring the buffers that are no arguments, integers, to the arguments' device."""
        tensor = next((value for value in arguments if isinstance(value, Tensor)), None)
        for part in model.modules():
            for name, buffer in part._buffers.items():
                if buffer is not None and tensor is not None and not buffer.is_meta:
                    part._buffers[name] = buffer.to(tensor.device)


def _layout(model: nn.Module, inputs: int) -> Layout:
    states = list(model.state_dict(keep_vars=True).items())
    hidden = [
        (name, buffer)
        for name, buffer in model.named_buffers()
        if name not in {known for known, _ in states}
    ]
    return Layout(
        inputs,
        tuple(name for name, tensor in states if isinstance(tensor, nn.Parameter)),
        tuple(
            name
            for name, tensor in (*states, *hidden)
            if not isinstance(tensor, nn.Parameter) and tensor.is_floating_point()
        ),
        tuple(_attributes(model)),
    )


def _attributes(model: nn.Module) -> Iterator[str]:
    """Dotted names of the floating tensors that modules keep as plain attributes."""
    for prefix, part in model.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, Tensor) and value.is_floating_point():
                yield f"{prefix}.{name}" if prefix else name


def _read(model: nn.Module, name: str) -> Tensor:
    owner, _, attribute = name.rpartition(".")
    tensor: Tensor = getattr(model.get_submodule(owner), attribute)
    return tensor.detach()


def _write(model: nn.Module, name: str, value: Any) -> None:
    owner, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(owner), attribute, value)


def _input_names(model: nn.Module, count: int) -> list[str]:
    names = list(inspect.signature(model.forward).parameters)
    return (names + [f"input{index}" for index in range(len(names), count)])[:count]


def _named(function: Callable[..., Any], values: tuple[Any, ...]) -> list[tuple[str, Any]]:
    names = list(inspect.signature(function).parameters)[1:]
    names += [f"init{index}" for index in range(len(names), len(values))]
    return list(zip(names, values, strict=False))


def _is_number(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_number(item) for item in value)
    return isinstance(value, bool | int | float)
