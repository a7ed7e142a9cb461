"""A verifier of the task's own: `verify_fn(inputs, outputs)` gives scaled residuals."""

from __future__ import annotations

import inspect
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

import torch
from torch import Tensor

from gpu_runner.data.task import VERIFIER
from gpu_runner.engine.problem.compare import Comparison, WrongElement, unravelled
from gpu_runner.engine.problem.problem import ProblemError, in_float64

MOST_S = 10.0
"""Seconds that a verifier may take for one call."""
MOST_RESIDUALS = 16  # chosen: a page shows them all
_LONGEST_NAME = 80  # chosen: as of a task
_LARGEST = 1e300  # stands for an infinite residual: JSON has no infinity

Verifier = Callable[..., object]
Residuals = list[tuple[str, Comparison]]


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
        raise VerifierError(f"gave NaN as {name!r} of finite outputs")
    flat = flat.masked_fill(unknown, math.inf)
    if bool((flat < 0).any()):
        raise VerifierError(f"gave {flat.min().item():.3g} as {name!r}: residuals are from 0")
    largest, wrong = min(flat.max().item(), _LARGEST), flat > 1
    size = min(flat.square().mean().sqrt().item(), _LARGEST)
    if not bool(wrong.any()):
        return Comparison(largest, size, None, None, None)
    at = int(wrong.to(torch.uint8).argmax().item())
    index = unravelled(at, tuple(tensor.shape))
    reason = f"the task's verifier allows 1 and finds {flat[at].item():.3g}"
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
