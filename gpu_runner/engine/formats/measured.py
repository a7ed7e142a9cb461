"""Error scales for tasks that define none: measured on the reference, whose sums are traced."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.formats.precision import FLOAT32
from gpu_runner.engine.problem.arguments import leaves
from gpu_runner.engine.problem.compare import Limit, limit_of
from gpu_runner.engine.problem.problem import Drawn, Problem, ProblemError, map_tensors, outputs_of

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
_SHORT = 4096
"""No sane kernel sums more terms than this into one float32 one after the other, products apart."""
_LONG = 65536  # chosen: of a batch no sane kernel sums more into one float32
_AT_MOST_TIMES_LONGEST = 16  # chosen: errors of many sums partly cancel
_PRODUCTS = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "linear", "mkldnn_linear"), 0),
    **dict.fromkeys(("addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation"), 1),
}
"""Operation -> position of the argument whose last dimension is summed over."""
_ALONG = {"_softmax", "_log_softmax", "cumsum", "cumprod", "logcumsumexp"}
_SUMS = ("sum", "mean", "var", "std", "norm", "prod", "avg_pool", "loss", "_backward", "trace")
_RANDOM = {
    "native_dropout", "bernoulli", "bernoulli_", "rand", "randn", "rand_like", "randn_like",
    "randint", "randint_like", "randperm", "normal", "normal_", "uniform_", "multinomial",
    "exponential_", "random_", "rrelu_with_noise", "poisson", "normal_functional", "_fused_dropout",
}  # fmt: skip


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
        whole = limit_of(self.task, workload).factor
        factor = Limit.of(tolerance.constant, tolerance.growth, length).factor
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
    return map_tensors(Tensor.clone, value)


class Lengths(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, notes the lengths of all sums, and refuses random numbers.

    `total`: what stands for the reduction length in a `Tolerance`. Rounding errors of one
    operation after the other add up like their squares do, so the lengths add up.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._lengths: list[float] = [1.0]

    @property
    def total(self) -> float:
        """Sum of the lengths, at most a few times the longest one."""
        return min(sum(self._lengths), _AT_MOST_TIMES_LONGEST * max(self._lengths))

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        name = str(getattr(func, "overloadpacket", func)).rpartition(".")[2]
        if name in _RANDOM:
            raise ProblemError(f"the reference is random: it calls {name}, so nothing can match it")
        length = _length(name, args, result)
        if length > 1:
            self._lengths.append(length)
        return result


def _length(name: str, args: tuple[Any, ...], result: Any) -> float:
    """Number of terms that an element of `result` sums up, 1 where it sums nothing."""
    if name in _PRODUCTS:
        return float(args[_PRODUCTS[name]].shape[-1])
    if name == "convolution_backward":
        gradient, weight = args[0], args[2]
        over_batch = gradient.numel() / gradient.shape[1]
        return float(min(max(over_batch, weight.numel() / weight.shape[1]), _LONG))
    if "convolution" in name and len(args) > 1:
        return _convolution(args)
    if name in _ALONG:
        return min(float(args[0].shape[args[1]]) if args[0].dim() else 1.0, _SHORT)
    if "scaled_dot_product" in name:
        return float(args[0].shape[-1] + min(args[1].shape[-2], _SHORT))
    if any(word in name for word in _SUMS):
        return _ratio(args, result)
    return 1.0


def _convolution(args: tuple[Any, ...]) -> float:
    weight: Tensor = args[1]
    transposed = len(args) > 6 and args[6] is True
    if not transposed:
        return weight.numel() / weight.shape[0]
    groups = args[8] if len(args) > 8 else 1
    return weight.shape[0] / groups * math.prod(weight.shape[2:])


def _ratio(args: tuple[object, ...], result: object) -> float:
    """Elements of the largest argument for each one of the smallest result (means, say)."""
    largest = max((tensor.numel() for tensor in leaves(args)), default=0)
    smallest = min((t.numel() for t in leaves(result) if t.numel()), default=0)
    return min(largest / smallest, _SHORT) if smallest else 1.0


def traced(function: Callable[[], object]) -> tuple[object, float]:
    """The function's result, and the total length of its sums."""
    lengths = Lengths()
    with lengths:
        result = function()
    return result, lengths.total


def epsilon(dtype: torch.dtype) -> float:
    """Machine epsilon of a floating-point dtype."""
    return float(torch.finfo(dtype).eps)
