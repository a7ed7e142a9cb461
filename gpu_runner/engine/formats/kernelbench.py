"""KernelBench problem files as problems: Model's inputs and weights become arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.formats.measured import MeasuredProblem, copies
from gpu_runner.engine.formats.module import import_file, member, task_code
from gpu_runner.engine.formats.precision import NARROW, in_double
from gpu_runner.engine.problem.problem import Drawn, ProblemError, in_float64, outputs_of
from gpu_runner.engine.problem.values import varied
from gpu_runner.engine.runner.model_weights import as_json, hold_still


@dataclass(frozen=True)
class InitCall:
    """Arguments of Model, by position and by name."""

    arguments: tuple[object, ...]
    keywords: Mapping[str, object] = field(default_factory=dict)

    def values(self) -> tuple[object, ...]:
        """All arguments, those by name last."""
        return (*self.arguments, *self.keywords.values())

    def names(self, parameters: list[str]) -> list[str]:
        """Names of all arguments, Model taking these parameters; `init0` for one without a name."""
        count = len(self.arguments)
        names = parameters + [f"init{index}" for index in range(len(parameters), count)]
        return [*names[:count], *self.keywords]

    def replaced(self, values: tuple[object, ...]) -> InitCall:
        """The same with other values, in the order of `values`."""
        count = len(self.arguments)
        return InitCall(values[:count], dict(zip(self.keywords, values[count:], strict=True)))


def init_calls(given: object, fits: Callable[[InitCall], bool]) -> list[InitCall]:
    """Ways to make Model of what get_init_inputs() gives that fit its parameters, likeliest first.

    KernelBench's list has one argument an item, KernelBook's is `[[arguments], {by name}]`. A
    dictionary at the end whose keys are parameters is taken for arguments by name, too. None where
    nothing fits.
    """
    return [call for call in _ways(given) if fits(call)]


def _ways(given: Any) -> Iterator[InitCall]:
    if _is_named(given):
        yield InitCall((), given)
    if not isinstance(given, tuple | list):
        return
    first: Any = given[0] if given else None
    last: Any = given[-1] if given else None
    is_list = isinstance(first, tuple | list)
    if _is_named(last):
        if is_list and len(given) == 2:
            yield InitCall(tuple(first), last)
        yield InitCall(tuple(given[:-1]), last)
    yield InitCall(tuple(given))
    if is_list and len(given) == 1:
        yield InitCall(tuple(first))


def _is_named(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def is_number(value: object) -> bool:
    """Whether a kernel gets such an argument of Model, too: a number, a truth, or some of them."""
    if isinstance(value, tuple | list):
        return all(map(is_number, value))
    return isinstance(value, bool | int | float)


def make_problem(task: Task, folder: Path) -> KernelBenchProblem:
    """Import the task's only file and return its `Problem`."""
    (name,) = task.files
    return KernelBenchProblem(task, import_file(folder / name, "kernelbench_problem"))


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
        self.module = module
        if task.dtype != "float32":
            self.widened = NARROW
        for name in ("Model", "get_inputs", "get_init_inputs"):
            member(module, name)
        self._frame: tuple[nn.Module, Layout, InitCall] | None = None

    def draw_inputs(
        self, workload: Workload, direction: Direction, seed: int, device: str
    ) -> Drawn:
        """A new Model with random weights, then get_inputs() with the workload's sizes."""
        with task_code("the task's code"):
            call, model = self.make()
            inputs = self.inputs(workload)
        model = model.to(device)  # weights that it made from numpy, say
        inputs = tuple(v.to(device) if isinstance(v, Tensor) else v for v in inputs)
        inputs = varied(inputs, self.task, workload, seed)
        layout = _layout(model, len(inputs))
        states = model.state_dict(keep_vars=True)
        attributes = [_read(model, name) for name in layout.attributes]
        names = [*_input_names(model, len(inputs)), *layout.states, *layout.attributes]
        named = zip(call.names(_parameters(type(model).__init__)), call.values(), strict=True)
        numbers = [(name, value) for name, value in named if is_number(value)]
        numbers = [(f"init.{name}" if name in names else name, value) for name, value in numbers]
        tensors = [states[name].detach() for name in layout.states]
        self._keep(model, layout, call)
        return Drawn(
            (*names, *(name for name, _ in numbers)),
            (*inputs, *tensors, *attributes, *(value for _, value in numbers)),
        )

    def function(self, direction: Direction) -> Callable[..., object]:
        """Model's forward with the arguments put in the place of its weights."""
        if self._frame is None:
            with torch.no_grad(), task_code("the task's code"):
                call, model = self.make()
                count = len(self.inputs(self.task.workloads[-1]))  # often the smallest
            self._keep(model, _layout(model, count), call)
        assert self._frame is not None
        return Forward(*self._frame, self._other)

    def expected(
        self, workload: Workload, direction: Direction, seed: int, device: str
    ) -> tuple[Tensor, ...]:
        drawn = self.draw(workload, direction, seed, device)
        with in_double(device, self.widened), task_code("Model.forward"):
            return outputs_of(self.function(direction)(*in_float64(drawn.arguments)))

    def evaluate(self, drawn: Drawn, direction: Direction) -> tuple[Tensor, ...]:
        with task_code("Model.forward"):
            return outputs_of(self.function(direction)(*copies(drawn.arguments)))

    def model_call(self) -> dict[str, object]:
        """How a submission's own model is made and gets its weights, as JSON values.

        With a `reason` where Model takes what no JSON holds.
        """
        assert self._frame is not None
        _, layout, call = self._frame
        told = asdict(layout)
        try:
            named = {name: as_json(value) for name, value in call.keywords.items()}
            return {**told, "arguments": list(map(as_json, call.arguments)), "keywords": named}
        except TypeError as error:
            return {
                **told,
                "reason": f"the task's get_init_inputs() returns an unusable value: {error}",
            }

    def inputs(self, workload: Workload) -> tuple[object, ...]:
        """get_inputs(), which sees the workload's parameters in the place of the module's sizes."""
        sizes = {
            name: size if isinstance(size, int) else tuple(size)
            for name, size in workload.parameters.items()
        }
        own = {name: member(self.module, name) for name in sizes}
        try:
            vars(self.module).update(sizes)
            inputs = self.module.get_inputs()
        finally:
            vars(self.module).update(own)
        if not isinstance(inputs, tuple | list):
            raise ProblemError(f"get_inputs() must return a list, not a {type(inputs).__name__}")
        if any(isinstance(each, dict) for each in inputs):
            reason = "which kernels can't take: return its values one by one"
            raise ProblemError(f"get_inputs() gives a dictionary, {reason}")
        return tuple(inputs)

    def make(self, call: InitCall | None = None) -> tuple[InitCall, nn.Module]:
        ways = [call] if call is not None else self._ways()
        call, model = _first_made(self.module.Model, ways)
        return call, hold_still(model)

    def _ways(self) -> list[InitCall]:
        """The ways to make Model of what get_init_inputs() gives."""
        given = self.module.get_init_inputs()
        ways = init_calls(given, lambda call: _fits(self.module.Model, call))
        if not ways:
            raise ProblemError(
                f"Model doesn't accept what get_init_inputs() returns: {given!r:.200}"
            )
        return ways

    def _other(self, call: InitCall) -> nn.Module:
        """The model of these arguments in place of get_init_inputs()'s, without its weights."""
        _, model = self.make(call)
        return _bare(model)

    def _keep(self, model: nn.Module, layout: Layout, call: InitCall) -> None:
        """Keep the model without its weights, for `function`."""
        self._frame = (_bare(model), layout, call)


def _fits(model: type, call: InitCall) -> bool:
    """Whether the number and the names of the arguments are right."""
    try:
        inspect.signature(model).bind(*call.arguments, **call.keywords)
    except TypeError:
        return False
    except ValueError:  # it has no signature to look at
        return True
    return True


def _first_made(model: type[nn.Module], ways: list[InitCall]) -> tuple[InitCall, nn.Module]:
    """The model of the first call that it takes; raises what the first one raises if it takes none.

    Which one it is depends on nothing that is drawn.
    """
    failure: Exception | None = None
    for call in ways:
        try:
            return call, model(*call.arguments, **call.keywords)
        except Exception as error:  # its own code's, of any kind
            failure = failure or error
    assert failure is not None
    raise failure


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
        call: InitCall,
        other: Callable[[InitCall], nn.Module],
    ) -> None:
        """`call` made the model; `other` makes one of other arguments."""
        self._model, self._layout, self._call, self._other = model, layout, call, other

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

    def _model_of(self, numbers: tuple[object, ...]) -> nn.Module:
        """The model, or where a number is another one, a model that is made with it.

        Without numbers, the model as it is: callers may leave them out.
        """
        values = self._call.values()
        if not numbers or numbers == tuple(value for value in values if is_number(value)):
            return self._model
        rest = iter(numbers)
        others = tuple(next(rest) if is_number(value) else value for value in values)
        return self._other(self._call.replaced(others))

    def _settle(self, model: nn.Module, arguments: tuple[object, ...]) -> None:
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


def _write(model: nn.Module, name: str, value: object) -> None:
    owner, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(owner), attribute, value)


def _input_names(model: nn.Module, count: int) -> list[str]:
    names = list(inspect.signature(model.forward).parameters)
    return (names + [f"input{index}" for index in range(len(names), count)])[:count]


def _parameters(function: Callable[..., object]) -> list[str]:
    """Names of a method's parameters, itself left out."""
    return list(inspect.signature(function).parameters)[1:]
