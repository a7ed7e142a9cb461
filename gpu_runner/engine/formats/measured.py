"""Error scales for tasks that define none: measured on the reference itself."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.formats.lengths import bound_factor, epsilon, traced
from gpu_runner.engine.formats.precision import FLOAT32
from gpu_runner.engine.problem.problem import Drawn, Problem, ProblemError, outputs_of

_SLACK = 4.0
"""How many times less accurate than the eager float32 reference a kernel may be, on top."""
_MOST_SLACK = 4096.0
"""Units in the last place: an eager reference that is worse than that is no yardstick."""
_NARROW = 1.5
"""Units in the last place of an output narrower than float32, which is rounded once at the end;
as softmax_bf16 of the catalog has it."""
_MOST_NARROW_SLACK = 16.0
"""As `_MOST_SLACK`, of such an output; chosen: an eighth of what it is in bfloat16."""
_NOISE = 0.1
"""Error over size of an output, both as root mean squares, from which on no digit is right."""


class MeasuredProblem(Problem):
    """A `Problem` whose bounds follow from how its reference behaves in its own dtype.

    With L the traced length of its sums, an output element may be off by `eps * (constant +
    growth * sqrt(L)) * (|e| + rms(e))`, plus four times the error that the eager reference has in
    the task's dtype (that element's, and the root mean square): a reference that amplifies
    rounding errors, by an exponential or by cancellation, allows a kernel the same, within reason.
    For outputs narrower than float32 the first part is that of float32 and one and a half units in
    the last place, and the eager reference's last rounding is no error.

    `widened`: what the reference asks for by name and gets as float64 for the expected outputs.
    """

    widened = FLOAT32

    @abstractmethod
    def evaluate(self, drawn: Drawn, direction: Direction) -> tuple[Tensor, ...]:
        """Outputs of the eager reference in the task's dtype, on inputs that it may spoil."""

    def scale(
        self,
        workload: Workload,
        direction: Direction,
        seed: int,
        device: str,
        expected: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...] | None:
        """See `Problem.scale`; in units of the task's own tolerance.

        Raises `ProblemError` where the reference is random, or its result rounding noise.
        """
        drawn = self.draw(workload, direction, seed, device)
        with torch.no_grad(), torch.device(device):
            rounded, length = traced(lambda: self.evaluate(drawn, direction))
        tolerance = self.task.tolerance
        whole = bound_factor(
            tolerance.constant, tolerance.growth, self.task.reduction_length(workload)
        )
        factor = bound_factor(tolerance.constant, tolerance.growth, length)
        return tuple(
            _scale(wanted, seen, factor, whole)
            for wanted, seen in zip(expected, outputs_of(rounded), strict=True)
        )


def _scale(expected: Tensor, rounded: Tensor, factor: float, whole: float) -> Tensor:
    """Scale of one output, float64, shaped like it: the bound over `eps * whole`."""
    if not rounded.is_floating_point():
        return torch.ones_like(expected, dtype=torch.float64)  # judged exactly
    most, nearest = _MOST_SLACK, expected
    inner = epsilon(torch.float32) / epsilon(rounded.dtype)
    if inner < 1:
        most, nearest = _MOST_NARROW_SLACK, expected.to(rounded.dtype).double()
        factor = _NARROW + inner * factor
    size = torch.nan_to_num(expected.double().abs(), nan=0.0, posinf=0.0)
    error = (rounded.double() - nearest).abs_().nan_to_num_(nan=0.0, posinf=0.0)
    typical, noise = _rms(size), _rms(error)
    if noise > _NOISE * typical:
        raise ProblemError(
            f"this task can't be judged: its output is rounding noise, off by {noise:.2g} in the "
            f"reference's own {rounded.dtype} where it should be {typical:.2g}"
        )
    size.add_(typical)
    allowed = error.add_(noise).mul_(_SLACK / (epsilon(rounded.dtype) * whole))
    allowed = torch.minimum(allowed, size * (most / whole))
    return allowed.add_(size, alpha=factor / whole)


def _rms(values: Tensor) -> float:
    if values.numel() == 0:
        return 0.0
    norm = float(torch.linalg.vector_norm(values))
    return norm / math.sqrt(values.numel())


def copies(value: Any) -> Any:
    """`value` with every tensor cloned, through tuples and lists."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, tuple | list):
        return type(value)(copies(item) for item in value)
    return value
