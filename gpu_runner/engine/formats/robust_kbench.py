"""robust-kbench task folders as problems: a kernel gets what the task's model passes on."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.formats.robust_source import RobustSource
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.formats.gradients import (
    Backward,
    Plan,
    gradients_of,
    jumps,
    make_plan,
    shapes_of,
)
from gpu_runner.engine.formats.measured import MeasuredProblem, copies, epsilon, traced
from gpu_runner.engine.formats.module import import_file, member, task_code
from gpu_runner.engine.formats.precision import in_double
from gpu_runner.engine.problem.arguments import leaves
from gpu_runner.engine.problem.compare import limit_of
from gpu_runner.engine.problem.problem import Drawn, ProblemError, in_float64, outputs_of
from gpu_runner.engine.problem.seeding import reseed
from gpu_runner.engine.problem.values import varied

_SEED_MASK = 2**63 - 1  # torch takes seeds of 63 bits
_GRADIENT_SEED = 0x6AD_5EED  # keeps grad_output's stream apart from the inputs'
_MARGIN = 4.0  # units in the last place by which a value near a kink may be off, at least
_FORWARD, _OUTPUT_GRADIENTS, _TARGETS = "forward", "output_gradients", "targets"
_MOST_GRADIENTS = 64  # chosen: many times what a function returns


def make_problem(task: Task, folder: Path) -> RobustProblem:
    """Import func_forward.py and func_backward.py and return their `Problem`."""
    modules = {}
    for direction in task.directions:
        name = f"func_{direction}"
        modules[direction] = import_file(folder / f"{name}.py", name)
    return RobustProblem(task, modules)


class RobustProblem(MeasuredProblem):
    """Model, get_inputs and forward_fn of each direction's module."""

    def __init__(self, task: Task, modules: dict[Direction, ModuleType]) -> None:
        super().__init__(task)
        self._modules = modules
        self._plans: dict[str, Plan] = {}
        for direction, module in modules.items():
            for name in ("Model", "get_inputs", "forward_fn"):
                member(module, name)
            if direction is Direction.BACKWARD:
                member(module, "AutogradFunction")

    def draw_inputs(
        self, workload: Workload, direction: Direction, seed: int, device: str
    ) -> Drawn:
        """What the model passes to forward_fn, or its autograd class to backward_fn."""
        module = self._modules[direction]
        with task_code(f"func_{direction}.py"):
            model = module.Model(**workload.parameters["init"]).to(device)
            inputs = module.get_inputs(**workload.parameters["inputs"])
            inputs = tuple(v.to(device) if isinstance(v, Tensor) else v for v in inputs)
            inputs = varied(inputs, self.task, workload, seed)
            names, forward = forward_arguments(model, inputs, module.forward_fn)
            if direction is Direction.FORWARD:
                return Drawn(names, forward)
            forward = tuple(v.detach() if isinstance(v, Tensor) else v for v in forward)
            call = backward_call(
                module.AutogradFunction, forward, (seed ^ _GRADIENT_SEED) & _SEED_MASK
            )
        plan = make_plan(call.arguments, forward, call.output_gradients, call.targets)
        self._plans[workload.name] = plan
        values = {
            _FORWARD: forward,
            _OUTPUT_GRADIENTS: call.output_gradients,
            _TARGETS: call.targets,
        }
        return Drawn(self._backward_names(len(call.arguments)), call.arguments, values)

    def function(self, direction: Direction) -> Callable[..., object]:
        """`forward_fn`, or autograd's gradients of it (see `Backward`)."""
        forward_fn: Callable[..., object] = self._modules[direction].forward_fn
        if direction is Direction.FORWARD:
            return forward_fn
        return Backward(forward_fn, self._plan_for)

    def expected(
        self, workload: Workload, direction: Direction, seed: int, device: str
    ) -> tuple[Tensor, ...]:
        """See `Problem.expected`: forward_fn in float64, or autograd's gradients of it."""
        drawn = self.draw(workload, direction, seed, device)
        with in_double(device), task_code(f"func_{direction}.py"):
            if direction is Direction.BACKWARD:
                return self._gradients(drawn, in_float64)
            return outputs_of(self.function(direction)(*in_float64(drawn.arguments)))

    def evaluate(self, drawn: Drawn, direction: Direction) -> tuple[Tensor, ...]:
        with task_code(f"func_{direction}.py"):
            if direction is Direction.BACKWARD:
                return self._gradients(drawn, copies)
            return outputs_of(self.function(direction)(*copies(drawn.arguments)))

    def scale(
        self,
        workload: Workload,
        direction: Direction,
        seed: int,
        device: str,
        expected: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...] | None:
        """See `MeasuredProblem.scale`; gradients also get room for kinks (`jumps`)."""
        scales = super().scale(workload, direction, seed, device, expected)
        if direction is Direction.FORWARD or scales is None:
            return scales
        drawn = self.draw(workload, direction, seed, device)
        eps = epsilon(getattr(torch, self.task.dtype))
        with in_double(device):
            margin = eps * (_MARGIN + math.sqrt(self._depth(drawn)))
            room = jumps(lambda: self._gradients(drawn, in_float64), expected, margin)
        if room is None:
            return scales
        whole = limit_of(self.task, workload).factor
        return tuple(
            scale.add_(step, alpha=1 / (eps * whole))
            for scale, step in zip(scales, room, strict=True)
        )

    def _depth(self, drawn: Drawn) -> float:
        """Length of the sums that forward_fn computes, before any gradient."""
        forward_fn = self._modules[Direction.BACKWARD].forward_fn
        return traced(lambda: forward_fn(*in_float64(drawn.values[_FORWARD])))[1]

    def _gradients(self, drawn: Drawn, convert: Callable[[Any], Any]) -> tuple[Tensor, ...]:
        forward_fn = self._modules[Direction.BACKWARD].forward_fn
        gradients = convert(drawn.values[_OUTPUT_GRADIENTS])
        targets = drawn.values[_TARGETS]
        return gradients_of(forward_fn, convert(drawn.values[_FORWARD]), gradients, targets)

    def _plan_for(self, arguments: tuple[object, ...]) -> Plan:
        """The plan of the workload whose backward arguments have these shapes."""
        wanted = shapes_of(arguments)
        device = next(leaves(arguments)).device.type
        for workload in self.task.workloads:
            if Direction.BACKWARD not in workload.directions:
                continue
            if workload.name not in self._plans:
                self.draw(workload, Direction.BACKWARD, 0, device)
                self.forget()
            plan = self._plans[workload.name]
            if plan.shapes == wanted:
                return plan
        raise ProblemError("these arguments don't match any workload's backward call")

    def _backward_names(self, count: int) -> tuple[str, ...]:
        text = self.task.files["func_backward.py"]
        names = RobustSource.parse(text, Direction.BACKWARD).backward_call
        return names if len(names) == count else tuple(f"argument{i}" for i in range(count))


class _Captured(Exception):
    """Ends a call as soon as its arguments are known."""

    def __init__(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        super().__init__()
        self.arguments = arguments
        self.keywords = keywords


def _capture(*arguments: object, **keywords: object) -> object:
    raise _Captured(arguments, keywords)


def forward_arguments(
    model: Any, inputs: tuple[Any, ...], forward_fn: Callable[..., Any]
) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Names and values of what `model` passes to its function, by position."""
    try:
        model.forward(*inputs, fn=_capture)
    except _Captured as captured:
        signature = inspect.signature(forward_fn)
        bound = signature.bind(*captured.arguments, **captured.keywords)
        if bound.kwargs:
            bound.apply_defaults()  # a keyword may follow a parameter that was left out
        if bound.kwargs:
            raise ProblemError("forward_fn must be called with positional arguments only") from None
        return tuple(bound.arguments), bound.args
    raise ProblemError("Model.forward does not call the function that it is given as `fn`")


class _Context:
    """Stands in for autograd's ctx, so that both halves can be called by hand."""

    def __init__(self, arguments: tuple[object, ...]) -> None:
        self.saved_tensors: tuple[object, ...] = ()
        self.needs_input_grad = tuple(_differentiable(value) for value in arguments)

    def save_for_backward(self, *tensors: object) -> None:
        self.saved_tensors = tensors

    def mark_dirty(self, *tensors: object) -> None:
        raise ProblemError("AutogradFunction changes its inputs")

    def mark_non_differentiable(self, *tensors: object) -> None:
        """Nothing to note: gradients come from the reference itself."""

    def set_materialize_grads(self, _: object) -> None:
        """Nothing to note: every output has a gradient here."""


def _differentiable(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


@dataclass(frozen=True)
class BackwardCall:
    """What a backward kernel gets, and for which arguments of forward it returns gradients.

    output_gradients: the random gradients of the outputs. targets: for each of the kernel's
    outputs in order, the position of forward's argument whose gradient it is.
    """

    arguments: tuple[object, ...]
    output_gradients: tuple[Tensor, ...]
    targets: tuple[int, ...]


def backward_call(function: Any, arguments: tuple[Any, ...], seed: int) -> BackwardCall:
    """Run both halves of `function`, an autograd class, on the arguments of its forward."""
    context = _Context(arguments)
    outputs = outputs_of(_forward(function, context, arguments))
    reseed(seed)
    gradients = tuple(torch.randn_like(output) for output in outputs)
    function.backward_fn = _capture
    try:
        function.backward(context, *gradients)
    except _Captured as captured:
        if captured.keywords:
            raise ProblemError(
                "backward_fn must be called with positional arguments only"
            ) from None
        targets = _targets(function, context, gradients, len(arguments))
        return BackwardCall(captured.arguments, gradients, targets)
    raise ProblemError("AutogradFunction.backward does not call backward_fn")


def _forward(function: Any, context: _Context, arguments: tuple[Any, ...]) -> Any:
    if function.setup_context is torch.autograd.Function.setup_context:
        return function.forward(context, *arguments)
    outputs = function.forward(*arguments)
    function.setup_context(context, arguments, outputs)
    return outputs


def _targets(
    function: Any, context: _Context, gradients: tuple[Tensor, ...], count: int
) -> tuple[int, ...]:
    """Try how many results `backward` unpacks, and look where it puts each of them."""
    for results in range(_MOST_GRADIENTS):  # 0 stands for one that is not in a tuple
        marks = tuple(torch.zeros(()) for _ in range(max(results, 1)))
        answer = marks[0] if results == 0 else marks
        function.backward_fn = lambda *_, answer=answer: answer
        try:
            returned = function.backward(context, *gradients)
        except (ValueError, TypeError, IndexError, AttributeError, RuntimeError):
            continue  # unpacks another number of results
        returned = returned if isinstance(returned, tuple | list) else (returned,)
        if len(returned) == count:
            return tuple(_position(returned, mark) for mark in marks)
    raise ProblemError("AutogradFunction.backward must return backward_fn's results as gradients")


def _position(returned: tuple[object, ...] | list[object], mark: Tensor) -> int:
    for position, value in enumerate(returned):
        if value is mark:
            return position
    raise ProblemError("AutogradFunction.backward changes or drops a result of backward_fn")
