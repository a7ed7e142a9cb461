"""The native task format: inputs, references, scales, a baseline and a verifier in reference.py."""

from __future__ import annotations

import inspect
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType

import torch
from torch import Tensor

from gpu_runner.data.formats.kbench import BASELINE, LIBRARY
from gpu_runner.data.signature import argument_name
from gpu_runner.data.task import HARD_INPUTS, VERIFIER, Task, Values, Workload
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.engine.formats.module import import_file
from gpu_runner.engine.problem.compare import Comparison, WrongElement, unravelled
from gpu_runner.engine.problem.problem import (
    Drawn,
    Problem,
    ProblemError,
    exact,
    in_dtype,
    in_float64,
    map_tensors,
    outputs_of,
)
from gpu_runner.engine.problem.seeding import reseed
from gpu_runner.engine.problem.values import varied

_GRADIENT_SEED = 0x5EED_60AD  # keeps grad_output's stream apart from make_inputs'
_VERIFIER_SEED = 0x7E51_F1E4  # and the verifier's
_SEED_MASK = 2**63 - 1  # torch takes seeds of 63 bits
MOST_S = 10.0
"""Seconds that a verifier may take for one call."""
MOST_RESIDUALS = 16  # chosen: a page shows them all
_LONGEST_NAME = 80  # chosen: as of a task
_LARGEST = 1e300  # stands for an infinite residual: JSON has no infinity

Verifier = Callable[..., object]
Residuals = list[tuple[str, Comparison]]


def make_problem(task: Task, folder: Path) -> NativeProblem:
    """Import `folder`/reference.py and return its `Problem`."""
    return NativeProblem(task, import_file(folder / "reference.py", "reference", still=False))


class NativeProblem(Problem):
    """The functions of a reference.py."""

    def __init__(self, task: Task, module: ModuleType) -> None:
        super().__init__(task)
        signature = task.c_signature.parameters if task.abi is Abi.C else ()
        self._dtypes: dict[str, torch.dtype] = {p.name: getattr(torch, p.dtype) for p in signature}
        self._module = module
        self._shapes: dict[str, object] = {}  # workload -> forward's outputs on the meta device
        self._make_inputs = self._function("make_inputs")
        for direction in task.directions:
            if list(_parameters(self.baseline(direction))) != list(
                _parameters(self.function(direction))
            ):
                raise ProblemError(f"{BASELINE} must take the same parameters as forward_fn")

    def as_seen(self, name: str, value: object) -> object:
        """What the c ABI passes has its C type's dtype; see `Problem.as_seen`."""
        if name in self._dtypes and isinstance(value, Tensor):
            return value.detach().to(self._dtypes[name]).contiguous()
        real = name in self._dtypes and self._dtypes[name].is_floating_point
        if name in self._dtypes and isinstance(value, int | float if real else float):
            return torch.tensor(value, dtype=self._dtypes[name], device="cpu").item()
        return super().as_seen(name, value)

    def function(self, direction: Direction) -> Callable[..., object]:
        """`forward_fn` or `backward_fn`."""
        return self._function(f"{direction}_fn")

    def baseline(self, direction: Direction, library: str = "") -> Callable[..., object]:
        """`library_NAME`, or `baseline_fn` of the forward direction where reference.py has one."""
        if library:
            return self._function(f"{LIBRARY}{library}")
        return (
            self._function(BASELINE) if self.has_baseline(direction) else self.function(direction)
        )

    def has_baseline(self, direction: Direction) -> bool:
        return direction is Direction.FORWARD and hasattr(self._module, BASELINE)

    def draw_inputs(
        self, workload: Workload, direction: Direction, seed: int, device: str
    ) -> Drawn:
        """Call `make_inputs`, or `make_hard_inputs` for hard values.

        For `backward` add `grad_output` and `output` where asked for.
        """
        is_hard = workload.values is Values.HARD
        make = self._function(HARD_INPUTS) if is_hard else self._make_inputs
        values = make(**workload.parameters)
        if not isinstance(values, Mapping):
            raise ProblemError(f"{make.__name__} must return a dict of arguments by name")
        values = self._varied(dict(values), workload, seed)
        function = self.function(direction)
        if direction is Direction.BACKWARD:
            values |= self._gradients(workload, values, seed, _parameters(function))
        return _drawn(function, values, workload)

    def scale(
        self,
        workload: Workload,
        direction: Direction,
        seed: int,
        device: str,
        expected: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...] | None:
        """`forward_scale` or `backward_scale` in float64, if there is one.

        It may also take `inner_eps`, see `inner_eps`.
        """
        function = getattr(self._module, f"{direction}_scale", None)
        if function is None:
            return None
        drawn = self.draw(workload, direction, seed, device)
        values = {**drawn.values, **drawn.named}
        values.setdefault("inner_eps", inner_eps(self.task.real_dtype or "float32"))
        chosen = _drawn(function, values, workload)
        with exact(device):
            scales = outputs_of(function(*in_float64(chosen.arguments)))
        if [s.shape for s in scales] != [e.shape for e in expected]:
            raise ProblemError(f"{direction}_scale must return one tensor per output, of its shape")
        return scales

    def has_verifier(self, direction: Direction) -> bool:
        return direction is Direction.FORWARD and hasattr(self._module, VERIFIER)

    def verified(
        self,
        workload: Workload,
        direction: Direction,
        seed: int,
        device: str,
        outputs: Mapping[str, Tensor],
    ) -> Residuals | None:
        """`verify_fn` on what was drawn and the workload's parameters, if there is one."""
        if not self.has_verifier(direction):
            return None
        drawn = self.draw(workload, direction, seed, device)
        inputs = {**workload.parameters, **drawn.values, **drawn.named}
        eps = torch.finfo(getattr(torch, self.task.real_dtype or "float32")).eps
        reseed((seed ^ _VERIFIER_SEED) & _SEED_MASK)
        with exact(device):
            return residuals(self._function(VERIFIER), inputs, outputs, eps)

    def _varied(
        self, values: dict[str, object], workload: Workload, seed: int
    ) -> dict[str, object]:
        """The values with those in the workload's family that reference.py lists in `VARIED`.

        All, where it has no such tuple of names: a variance, say, must not become negative.
        """
        names = getattr(self._module, "VARIED", tuple(values))
        if not set(names) <= set(values):
            raise ProblemError("VARIED names a value that make_inputs does not return")
        chosen = tuple(values[name] for name in names)
        return values | dict(zip(names, varied(chosen, self.task, workload, seed), strict=True))

    def _gradients(
        self, workload: Workload, values: dict[str, object], seed: int, wanted: Mapping[str, object]
    ) -> dict[str, object]:
        found: dict[str, object] = {}
        if "output" in wanted or workload.name not in self._shapes:
            output = self._forward(workload, values)
            self._shapes[workload.name] = map_tensors(lambda t: t.to("meta"), output)
            found["output"] = output
        reseed((seed ^ _GRADIENT_SEED) & _SEED_MASK)
        gradient = map_tensors(lambda t: torch.randn(t.shape), self._shapes[workload.name])
        gradient = varied(gradient, self.task, workload, seed)
        found["grad_output"] = in_dtype(gradient, self.task.dtype)
        return found

    def _forward(self, workload: Workload, values: dict[str, object]) -> object:
        forward = self._function("forward_fn")
        arguments = in_dtype(_drawn(forward, values, workload).arguments, self.task.dtype)
        output = forward(*arguments)
        outputs_of(output)
        return output

    def _function(self, name: str) -> Callable[..., object]:
        found = getattr(self._module, name, None)
        if not callable(found):
            raise ProblemError(f"reference.py has no function {name}")
        function: Callable[..., object] = found
        return function


def inner_eps(dtype: str) -> float:
    """Machine epsilon of the dtype that kernels compute in, as a multiple of that of `dtype`.

    1 for float32 and above; 2^-16 for bfloat16, which is computed in float32 and rounded once. An
    error scale needs it for errors that arise before that rounding, where terms cancel.
    """
    outer: torch.dtype = getattr(torch, dtype)
    if not outer.is_floating_point:
        return 1.0
    return torch.finfo(torch.promote_types(outer, torch.float32)).eps / torch.finfo(outer).eps


def _drawn(
    function: Callable[..., object], values: Mapping[str, object], workload: Workload
) -> Drawn:
    parameters = _parameters(function)
    arguments = []
    for name, parameter in parameters.items():
        if name in values:
            arguments.append(values[name])
        elif name in workload.parameters:
            arguments.append(workload.parameters[name])
        elif parameter.default is not inspect.Parameter.empty:
            arguments.append(parameter.default)
        else:
            raise ProblemError(
                f"{function.__name__} takes {name!r}, which is neither returned by make_inputs "
                f"nor a parameter of the workload {workload.name!r}"
            )
    return Drawn(tuple(parameters), tuple(arguments), values)


def _parameters(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            raise ProblemError(f"{function.__name__}: {parameter} must be an ordinary parameter")
    return {argument_name(name): parameter for name, parameter in parameters.items()}


class VerifierError(ProblemError):
    """The task's verifier is wrong, whatever the kernel gave it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{VERIFIER}() {what}: that is the task's fault, not the kernel's")


def residuals(
    function: Verifier, inputs: Mapping[str, object], outputs: Mapping[str, Tensor], eps: float
) -> Residuals:
    """What the verifier says of one call: a comparison for each name that it returns.

    It gets copies, floating ones in float64, and `eps` if it takes a third parameter. Raises
    `VerifierError` where it raises, takes more than `MOST_S`, or returns anything but residuals
    from 0; a NaN of finite outputs is none.
    """
    given: list[object] = [
        {name: in_float64(value) for name, value in values.items()} for values in (inputs, outputs)
    ]
    if len(inspect.signature(function).parameters) > len(given):
        given.append(eps)
    with _limited():
        try:
            found = function(*given)
        except ProblemError:
            raise
        except (Exception, SystemExit) as error:
            raise VerifierError(f"raised {type(error).__name__}: {error}"[:1000]) from error
    if not isinstance(found, Mapping) or not found:
        raise VerifierError(f"returned {type(found).__name__}, not a dict of residuals by name")
    if len(found) > MOST_RESIDUALS:
        raise VerifierError(f"returned more than {MOST_RESIDUALS} names")
    finite = all(bool(torch.isfinite(output.double()).all()) for output in outputs.values())
    return [(_name(name), _compared(name, found[name], finite=finite)) for name in found]


def _name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise VerifierError(f"names a residual {str(name)[:_LONGEST_NAME]!r}")
    return name


def _compared(name: str, value: object, *, finite: bool) -> Comparison:
    """A residual as a comparison, of which 1 and below passes."""
    if not isinstance(value, Tensor | int | float):
        raise VerifierError(f"gave {name!r} as {type(value).__name__}, not a number or a tensor")
    tensor = torch.as_tensor(value).detach()
    if tensor.is_complex() or tensor.numel() == 0:
        kind = "no numbers at all" if tensor.numel() == 0 else "complex numbers"
        raise VerifierError(f"gave {name!r} as {kind}, of shape {tuple(tensor.shape)}")
    flat = tensor.reshape(-1).double()
    unknown = torch.isnan(flat)
    if finite and bool(unknown.any()):
        raise VerifierError(f"gave NaN as {name!r} for finite outputs")
    flat = flat.masked_fill(unknown, math.inf)
    if bool((flat < 0).any()):
        least = f"{flat.min().item():.3g}"
        raise VerifierError(f"gave {least} as {name!r}: residuals must be 0 or more")
    largest, wrong = min(flat.max().item(), _LARGEST), flat > 1
    size = min(flat.square().mean().sqrt().item(), _LARGEST)
    if not bool(wrong.any()):
        return Comparison(largest, size, None, None, None)
    at = int(wrong.to(torch.uint8).argmax().item())
    index = unravelled(at, tuple(tensor.shape))
    reason = f"the task's verifier allows residuals of at most 1 and found {flat[at].item():.3g}"
    wrong_count, count = int(wrong.sum().item()), flat.numel()
    mismatch = WrongElement(reason, index, None, None, None, wrong_count, count)
    return Comparison(largest, size, mismatch, None, None)


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `VerifierError` in what takes longer than `MOST_S`, or after it."""

    def late(*_: int | FrameType | None) -> None:
        raise VerifierError(f"took more than {MOST_S:g} s")

    began = time.monotonic()
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, late) if is_main else None
    if is_main:
        signal.setitimer(signal.ITIMER_REAL, MOST_S)
    try:
        yield
    finally:
        if is_main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    if time.monotonic() - began > MOST_S:
        raise VerifierError(f"took more than {MOST_S:g} s")
