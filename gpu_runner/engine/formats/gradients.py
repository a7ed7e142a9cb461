"""Gradients of a functional reference by autograd, their jumps, and the eager backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gpu_runner.engine.problem.arguments import leaves
from gpu_runner.engine.problem.problem import map_tensors, outputs_of

Path = tuple[int, ...]
"""Where a value is among arguments: an index, and further ones inside tuples."""
_KINK_AT_ZERO = {"relu", "relu_", "leaky_relu", "leaky_relu_", "abs"}
_MAXIMA = {"max_pool1d", "max_pool2d", "max_pool3d", "_max_pool1d", "_max_pool2d", "_max_pool3d"}
_SEED = 0x5EED  # any: the same draw each time


def gradients_of(
    function: Callable[..., object],
    arguments: tuple[object, ...],
    output_gradients: tuple[Tensor, ...],
    targets: tuple[int, ...],
) -> tuple[Tensor, ...]:
    """Gradients for the arguments at `targets`, in that order; zeros where there is none.

    Shapes and dtypes are the arguments'. Raises what autograd raises.
    """
    return recorded(function, arguments, output_gradients, targets)()


def recorded(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    output_gradients: tuple[Tensor, ...],
    targets: tuple[int, ...],
) -> Callable[[], tuple[Tensor, ...]]:
    """Run the function forward, and return what runs it backward, once; see `gradients_of`."""
    inputs = tuple(
        value.detach().requires_grad_() if position in targets else value
        for position, value in enumerate(arguments)
    )
    with torch.enable_grad():
        result = function(*inputs)
    outputs = tuple(leaves(result))
    wanted = [inputs[position] for position in targets]

    def backward() -> tuple[Tensor, ...]:
        found = torch.autograd.grad(outputs, wanted, output_gradients, allow_unused=True)
        return tuple(
            torch.zeros_like(leaf) if gradient is None else gradient
            for gradient, leaf in zip(found, wanted, strict=True)
        )

    return backward


@dataclass(frozen=True)
class Plan:
    """How to get forward's arguments back from a backward kernel's, for one workload.

    sources: for each argument of forward its path among the kernel's, or None; `stand_ins` holds
    the others: plain values, and tensors that the kernel does not get, because no gradient
    depends on them. shapes: those of the kernel's arguments, by which a plan is recognised.
    """

    shapes: object
    sources: tuple[Path | None, ...]
    stand_ins: tuple[object, ...]
    output_gradients: tuple[Path | None, ...]
    gradient_stand_ins: tuple[object, ...]
    targets: tuple[int, ...]

    def forward(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return _chosen(arguments, self.sources, self.stand_ins)

    def gradients(self, arguments: tuple[object, ...]) -> tuple[Tensor, ...]:
        return _chosen(arguments, self.output_gradients, self.gradient_stand_ins)


def _chosen(
    arguments: tuple[object, ...], paths: tuple[Path | None, ...], stand_ins: tuple[object, ...]
) -> tuple[Any, ...]:
    return tuple(
        stand_in if path is None else _at(arguments, path)
        for path, stand_in in zip(paths, stand_ins, strict=True)
    )


def _at(value: Any, path: Path) -> Any:
    for index in path:
        value = value[index]
    return value


def make_plan(
    arguments: tuple[object, ...],
    forward: tuple[object, ...],
    output_gradients: tuple[Tensor, ...],
    targets: tuple[int, ...],
) -> Plan:
    """Look the tensors of forward up among a backward kernel's arguments, by identity."""
    sources = tuple(_find(arguments, value) for value in forward)
    gradients = tuple(_find(arguments, value) for value in output_gradients)
    return Plan(
        shapes=shapes_of(arguments),
        sources=sources,
        stand_ins=_missing(forward, sources),
        output_gradients=gradients,
        gradient_stand_ins=_missing(output_gradients, gradients),
        targets=targets,
    )


def _missing(values: tuple[object, ...], paths: tuple[Path | None, ...]) -> tuple[object, ...]:
    return tuple(value if path is None else None for value, path in zip(values, paths, strict=True))


def _find(arguments: Any, wanted: Any) -> Path | None:
    if not isinstance(wanted, Tensor):
        return None
    for index, value in enumerate(arguments):
        if value is wanted:
            return (index,)
        if isinstance(value, tuple | list):
            inner = _find(value, wanted)
            if inner is not None:
                return (index, *inner)
    return None


def shapes_of(value: object) -> object:
    """Shapes of all tensors, plain values as they are, nested like `value`."""
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, tuple | list):
        return tuple(shapes_of(item) for item in value)
    return value


class Backward:
    """The eager backward as a function of a backward kernel's arguments.

    `prepare` runs forward, which a kernel's caller has done before as well, and returns what is
    to be timed. Calling the object does both. `compiled` is the same under torch.compile.
    """

    def __init__(
        self, function: Callable[..., object], plan_for: Callable[[tuple[object, ...]], Plan]
    ) -> None:
        self._function = function
        self._plan_for = plan_for
        self._compiled: Backward | None = None

    def compiled(self) -> Backward:
        """The backward of the compiled function, whose backward is compiled as well."""
        if self._compiled is None:
            function = torch.compile(self._function, dynamic=False)
            self._compiled = Backward(function, self._plan_for)
        return self._compiled

    def prepare(self, arguments: tuple[object, ...]) -> Callable[[], tuple[Tensor, ...]]:
        """Run forward on a backward kernel's arguments; the result runs backward, once."""
        plan = self._plan_for(arguments)
        forward = map_tensors(lambda tensor: tensor.detach(), plan.forward(arguments))
        return recorded(self._function, forward, plan.gradients(arguments), plan.targets)

    def __call__(self, *arguments: object) -> tuple[Tensor, ...]:
        """The gradients, by position; takes `Drawn.arguments`."""
        if torch.compiler.is_compiling():  # someone compiles this object: compile what is inside
            return _call_compiled(self, arguments)
        return outputs_of(self.prepare(arguments)())


def _compiled_gradients(backward: Backward, arguments: tuple[object, ...]) -> tuple[Tensor, ...]:
    return outputs_of(backward.compiled().prepare(arguments)())


_call_compiled: Callable[[Backward, tuple[object, ...]], tuple[Tensor, ...]] = (
    torch.compiler.disable(  # type: ignore[no-untyped-call]
        _compiled_gradients
    )
)


class Contrary(TorchFunctionMode):
    """Makes rectifiers and pools decide the other way wherever rounding could have decided.

    That is where a rectifier's argument, or the distance of a pool's winner from the next, is
    below `margin * rms`. `half`: None for all such places; else a random half (0) of them, the
    same in every run, or the rest (1). `places` counts them; gradients flow as if nothing
    happened.
    """

    def __init__(self, margin: float, half: int | None = None) -> None:
        super().__init__()
        self._margin = margin
        self._half = half
        self._generators: dict[torch.device, torch.Generator] = {}
        self.places = 0

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        keywords = kwargs or {}
        name = getattr(func, "__name__", "")
        value = args[0] if args else None
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return func(*args, **keywords)
        if name in _KINK_AT_ZERO:
            return func(self._mirrored(value), *args[1:], **keywords)
        if name in _MAXIMA:
            return self._pool(func, value, args[1:], keywords)
        return func(*args, **keywords)

    def _mirrored(self, value: Tensor) -> Tensor:
        with torch.no_grad():
            change = torch.where(value.abs() < self._tolerance(value), -2 * value, 0)
            change = self._part(change)
            self.places += int(torch.count_nonzero(change))
        return value + change

    def _pool(
        self, func: Callable[..., Any], value: Tensor, args: Any, keywords: dict[str, Any]
    ) -> object:
        with torch.no_grad():
            wins = _wins(func, value, args, keywords)
            change = self._part(torch.where(wins > 0, -self._tolerance(value), 0))
            self.places += int((_wins(func, value + change, args, keywords) != wins).sum())
        return func(value + change, *args, **keywords)

    def _tolerance(self, value: Tensor) -> Tensor:
        return self._margin * value.square().mean().sqrt()

    def _part(self, change: Tensor) -> Tensor:
        if self._half is None:
            return change
        generator = self._generators.get(change.device)
        if generator is None:
            generator = torch.Generator(device=change.device).manual_seed(_SEED)
            self._generators[change.device] = generator
        coin = torch.randint(2, change.shape, generator=generator, device=change.device)
        return torch.where(coin == self._half, change, 0)


def _wins(func: Callable[..., Any], value: Tensor, args: Any, keywords: dict[str, Any]) -> Tensor:
    """How many windows of the pool each element wins."""
    with torch.enable_grad():
        leaf = value.detach().requires_grad_()
        result = func(leaf, *args, **keywords)
        pooled = result[0] if isinstance(result, tuple) else result
        (wins,) = torch.autograd.grad(pooled.sum(), leaf)
    return wins


def jumps(
    gradients: Callable[[], tuple[Tensor, ...]], usual: tuple[Tensor, ...], margin: float
) -> tuple[Tensor, ...] | None:
    """How far gradients may be off because of kinks; None where no value is near any.

    `gradients` computes in float64 what `usual` holds; `margin` is the relative rounding error of
    a value that meets a kink. Two places whose jumps cancel are told apart by halves.
    """
    found: tuple[Tensor, ...] | None = None
    for half in (None, 0, 1):
        contrary = Contrary(margin, half)
        with contrary:
            other = gradients()
        if contrary.places == 0 and half is None:
            return None
        steps = tuple((a - b).abs_() for a, b in zip(other, usual, strict=True))
        found = steps if found is None else tuple(map(Tensor.add_, found, steps))
    return found
