"""robust-kbench task folders as problems: a kernel gets what the task's model passes on."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.formats.robust_source import RobustSource
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.formats.boundaries import jumps
from gpu_runner.engine.formats.capture import backward_call, forward_arguments
from gpu_runner.engine.formats.gradients import (
    Backward,
    Plan,
    gradients_of,
    make_plan,
    shapes_of,
)
from gpu_runner.engine.formats.lengths import bound_factor, epsilon, traced
from gpu_runner.engine.formats.measured import MeasuredProblem, copies
from gpu_runner.engine.formats.module import import_file, member, task_code
from gpu_runner.engine.formats.precision import in_double
from gpu_runner.engine.problem.arguments import leaves
from gpu_runner.engine.problem.problem import Drawn, ProblemError, in_float64, outputs_of
from gpu_runner.engine.problem.values import varied

_SEED_MASK = 2**63 - 1  # torch takes seeds of 63 bits
_GRADIENT_SEED = 0x6AD_5EED  # keeps grad_output's stream apart from the inputs'
_MARGIN = 4.0  # units in the last place by which a value near a kink may be off, at least
_FORWARD, _OUTPUT_GRADIENTS, _TARGETS = "forward", "output_gradients", "targets"


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
        self,
        workload: Workload,
        direction: Direction,
        seed: int,
        device: str,
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
        """See `MeasuredProblem.evaluate`."""
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
        """See `MeasuredProblem.scale`; gradients also get room for kinks (`boundaries`)."""
        scales = super().scale(workload, direction, seed, device, expected)
        if direction is Direction.FORWARD or scales is None:
            return scales
        drawn = self.draw(workload, direction, seed, device)
        tolerance = self.task.tolerance
        eps = epsilon(getattr(torch, self.task.dtype))
        with in_double(device):
            margin = eps * (_MARGIN + math.sqrt(self._depth(drawn)))
            room = jumps(lambda: self._gradients(drawn, in_float64), expected, margin)
        if room is None:
            return scales
        whole = bound_factor(
            tolerance.constant, tolerance.growth, self.task.reduction_length(workload)
        )
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
        raise ProblemError("these are the arguments of no workload's backward")

    def _backward_names(self, count: int) -> tuple[str, ...]:
        text = self.task.files["func_backward.py"]
        names = RobustSource.parse(text, Direction.BACKWARD).backward_call
        return names if len(names) == count else tuple(f"argument{i}" for i in range(count))
