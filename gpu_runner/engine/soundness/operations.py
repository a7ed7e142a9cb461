"""Run a reference operation by operation, and do one of them wrongly."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gpu_runner.engine.problem.problem import map_tensors
from gpu_runner.engine.soundness.wild_indices import SPARSE, refuse_wild_indices

_NOT_THE_REFERENCE = (f"{Path(torch.__file__).parent}/", f"{Path(__file__).parents[1]}/")

Place = tuple[CodeType, int]
Change = Callable[[Tensor], Tensor]

_FUSED = {
    "_fused_rms_norm", "_log_softmax", "_log_softmax_backward_data", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "_softmax", "_softmax_backward_data", "addmm", "addmv",
    "baddbmm", "binary_cross_entropy", "cudnn_batch_norm", "gelu", "gelu_backward", "hardsigmoid",
    "hardswish", "huber_loss", "mse_loss", "native_batch_norm", "native_batch_norm_backward",
    "native_group_norm", "native_layer_norm", "native_layer_norm_backward", "nll_loss_backward",
    "nll_loss_forward", "silu", "silu_", "silu_backward", "smooth_l1_loss", "softplus",
    "threshold_backward",
}  # fmt: skip
"""Operations that are taken apart, so that each part can be left out."""
REDUCTIONS = {
    "amax", "amin", "linalg_vector_norm", "logsumexp", "mean", "prod", "std", "sum", "var",
    "var_mean",
}  # fmt: skip
_PRODUCTS = {"mm": 0, "mv": 0, "dot": 0, "bmm": 1}
"""Operation -> dimension of the second operand that is summed over."""
_CONVOLUTIONS = {"convolution", "_convolution"}
_POOLS = {"max_pool2d_with_indices"}
WITHOUT_ARITHMETIC = {
    "_to_copy", "_unsafe_view", "alias", "arange", "clone", "contiguous", "copy", "copy_", "detach",
    "empty", "empty_like", "fill", "fill_", "full", "full_like", "lift_fresh", "new_empty",
    "new_full", "new_zeros", "ones", "ones_like", "scalar_tensor", "sparse_compressed_tensor",
    "zeros", "zeros_like",
}  # fmt: skip
_TURNS = {"t", "transpose", "permute"}
PASSES = 4
"""Passes of a loop whose operations are edited: a reference that computes a large result in slices
would have as many edits as slices, each as long as the whole."""
Variants = dict[str, Callable[[], object]]


class Loops:
    """Counts how often a reference has come back to the place from which it calls operations."""

    def __init__(self) -> None:
        self._visits: Counter[Place | None] = Counter()
        self._last: Place | None = None

    def passes(self) -> int:
        """Which visit of its place the operation that runs now is part of, from 1.

        Operations that one place calls without another in between, such as all of a backward pass
        or those of a fused operation, belong to one visit.
        """
        here = _place()
        if here != self._last or not self._visits:
            self._visits[here] += 1
            self._last = here
        return self._visits[here]


def _place() -> Place | None:
    """The innermost place in the reference; None in a thread in which none of it runs."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_REFERENCE):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


@dataclass(frozen=True)
class Edit:
    """One change of one operation: the `number`th (from 1) of that name in a run."""

    operation: str
    number: int
    what: str

    def __str__(self) -> str:
        return f"{self.operation} {self.number}: {self.what}"


@dataclass(frozen=True)
class Step:
    """An operation that has run; `before` is its first argument where it works in place.

    One that is to be taken apart has not run, and has no result.
    """

    func: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    before: Tensor | None

    def again(self, *first: Any) -> Any:
        """Run it with other first arguments."""
        return self.func(*first, *self.args[len(first) :], **self.kwargs)


class Interpreter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, takes fused operations apart and applies one `edit`.

    `edits` are all that could have been applied, in order, but for those in late passes of a loop;
    `edited` says whether the one was.
    operands: applied to what products and convolutions multiply. results: applied to every floating
    result. instead: gives a step's result in some other way, or None to leave it; a fused operation
    is shown to it before it is taken apart. `replaced` counts the results that it gave.
    """

    def __init__(
        self,
        edit: Edit | None = None,
        *,
        operands: Change | None = None,
        results: Change | None = None,
        instead: Callable[[Step], Any] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.edits: list[Edit] = []
        self.edited = False  # whether `edit` was applied
        self.products = 0
        self.replaced = 0
        self._edit, self._operands, self._results = edit, operands, results
        self._instead = instead
        self._counts: Counter[str] = Counter()
        self._loops = Loops()

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        name = name_of(func)
        if name in _FUSED and self._instead is not None:
            whole = self._otherwise(Step(func, name, args, kwargs or {}, None, None))
            if whole is not None:
                return whole
        parts = taken_apart(self, func, args, kwargs or {})
        if parts is not NotImplemented:
            return parts
        if name in _PRODUCTS or name in _CONVOLUTIONS or name == "convolution_backward":
            self.products += 1
            if self._operands is not None:
                args = tuple(floats(self._operands, value) for value in args)
        if name in SPARSE or (args and isinstance(args[0], Tensor) and args[0].is_cuda):
            refuse_wild_indices(name, args)
        in_place = name.endswith("_") and bool(args) and isinstance(args[0], Tensor)
        before = args[0].clone() if in_place else None
        result = func(*args, **(kwargs or {}))
        if name in WITHOUT_ARITHMETIC or (getattr(func, "is_view", False) and name not in _TURNS):
            return result
        return self._changed(Step(func, name, args, kwargs or {}, result, before))

    def _changed(self, step: Step) -> object:
        self._counts[step.name] += 1
        number = self._counts[step.name]
        variants = _variants(step)
        if self._loops.passes() <= PASSES:
            self.edits += [Edit(step.name, number, what) for what in variants]
        result = step.result
        edit = self._edit
        if edit is not None and (edit.operation, edit.number) == (step.name, number):
            if edit.what in variants:
                result, self.edited = variants[edit.what](), True
        elif self._instead is not None:
            other = self._otherwise(step)
            result = result if other is None else other
        if self._results is not None:
            result = floats(self._results, result)
        if step.before is not None and result is not step.args[0]:
            step.args[0].copy_(result)
            return step.args[0]
        return result

    def operations(self) -> frozenset[str]:
        """Names of what has run, but for views and what computes nothing."""
        return frozenset(self._counts)

    def _otherwise(self, step: Step) -> object:
        other = self._instead(step) if self._instead is not None else None
        self.replaced += other is not None
        return other


def name_of(func: Callable[..., object]) -> str:
    """The operation's name, without its overload's."""
    return str(getattr(func, "overloadpacket", func)).rpartition(".")[2]


def taken_apart(
    mode: TorchDispatchMode,
    func: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    """The result of a fused operation, its parts run under `mode`; NotImplemented for others."""
    fused = name_of(func) in _FUSED and all(_dense(value) for value in args)
    parts = torch._decomp.decomposition_table.get(func) if fused else None  # type: ignore[call-overload]
    if parts is None:
        return NotImplemented
    with mode:
        return parts(*args, **kwargs)


def _dense(value: object) -> bool:
    return not isinstance(value, Tensor) or value.layout is torch.strided


def floats(change: Change, value: Any) -> Any:
    """`value` with `change` applied to its dense floating tensors, also in tuples and lists."""

    def one(tensor: Tensor) -> Tensor:
        plain = tensor.is_floating_point() and tensor.layout is torch.strided
        return change(tensor) if plain else tensor

    return map_tensors(one, value)


def _variants(step: Step) -> Variants:
    """Ways to do a step wrongly, by name."""
    found = _removals(step)
    if step.name in _TURNS:
        return found
    if step.name in REDUCTIONS:
        found |= _shorter_sums(step)
    elif step.name in _PRODUCTS:
        found |= _shorter_products(step)
    elif step.name in _CONVOLUTIONS:
        found |= _shorter_convolutions(step)
    elif step.name in _POOLS:
        found |= _smaller_windows(step)
    elif torch.Tag.pointwise not in getattr(step.func, "tags", ()):
        found |= _halved_arguments(step)
    return found


def _removals(step: Step) -> Variants:
    result = step.result
    if not isinstance(result, Tensor) or result.layout is not torch.strided:
        return {}
    if result.dtype is torch.bool:
        return {
            "always true": lambda: torch.ones_like(result),
            "always false": lambda: torch.zeros_like(result),
        }
    if not result.is_floating_point():
        return {}
    operands = [step.before if step.before is not None else (step.args or (None,))[0]]
    operands += step.args[1:3]
    found: Variants = {}
    for position, value in enumerate(operands):
        if (
            isinstance(value, Tensor)
            and value.shape == result.shape
            and value.dtype == result.dtype
        ):
            what = "removed" if not found else f"argument {position + 1} alone"
            found[what] = value.clone
    return found


def _shorter_sums(step: Step) -> Variants:
    value: Tensor = step.args[0]
    dim = summed(step, value)
    if dim is None or value.shape[dim] < 2:
        return {}
    size = value.shape[dim]
    return {
        "second half of the terms left out": lambda: step.again(
            value.narrow(dim, 0, (size + 1) // 2)
        ),
        "last term left out": lambda: step.again(value.narrow(dim, 0, size - 1)),
        "only the last term": lambda: step.again(value.narrow(dim, size - 1, 1)),
    }


def argument(step: Step, name: str) -> Any:
    """What the operation was given for that parameter; None for nothing, or if it has none."""
    names = [each.name for each in step.func._schema.arguments]  # type: ignore[attr-defined]
    if name in names and names.index(name) < len(step.args):
        return step.args[names.index(name)]
    return step.kwargs.get(name)


def summed(step: Step, value: Tensor) -> int | None:
    """The longest dimension that a reduction runs over."""
    given = argument(step, "dim")
    dims = [given] if isinstance(given, int) else list(given or range(value.dim()))
    return max(dims, key=lambda d: value.shape[d], default=None)


def _cleared(value: Tensor, dim: int, start: int, length: int) -> Tensor:
    changed = value.clone()
    changed.narrow(dim, start, length).zero_()
    return changed


def _shorter_products(step: Step) -> Variants:
    first, second = step.args[0], step.args[1]
    dim = _PRODUCTS[step.name]
    size = second.shape[dim]
    if size < 2:
        return {}

    def without(start: int, length: int) -> Callable[[], Any]:
        return lambda: step.again(first, _cleared(second, dim, start, length))

    return {
        "second half of the terms left out": without((size + 1) // 2, size // 2),
        "last term left out": without(size - 1, 1),
        "only the last term": without(0, size - 1),
    }


def _shorter_convolutions(step: Step) -> Variants:
    value, weight = step.args[0], step.args[1]
    found: Variants = {}

    def without(dim: int, start: int, length: int) -> Callable[[], object]:
        return lambda: step.again(value, _cleared(weight, dim, start, length))

    for dim, what in ((1, "channels"), (2, "rows"), (3, "columns")):
        size = weight.shape[dim] if dim < weight.dim() else 1
        if size > 1:
            found[f"second half of the {what} left out"] = without(dim, (size + 1) // 2, size // 2)
            found[f"last of the {what} left out"] = without(dim, size - 1, 1)
            found[f"last of the {what} alone"] = without(dim, 0, size - 1)
    if len(step.args) > 2 and step.args[2] is not None:
        found["without its bias"] = lambda: step.again(value, weight, None)
    return found


def _smaller_windows(step: Step) -> Variants:
    value, window = step.args[0], list(step.args[1])
    stride = list(step.args[2] or window) if len(step.args) > 2 else window
    shape = step.result[0].shape

    def one(dim: int) -> Callable[[], object]:
        smaller = [1 if d == dim else size for d, size in enumerate(window)]

        def run() -> object:
            found = step.func(value, smaller, stride, *step.args[3:], **step.kwargs)
            return tuple(part[..., : shape[-2], : shape[-1]].contiguous() for part in found)

        return run

    whats = ("only the first row of a window", "only the first column of a window")
    return {what: one(dim) for dim, what in enumerate(whats) if window[dim] > 1}


def _halved_arguments(step: Step) -> Variants:
    """What is not known in detail gets zeros in half of an argument, along either dimension."""
    found: Variants = {}
    for position, value in enumerate(step.args):
        if not isinstance(value, Tensor) or not value.is_floating_point() or step.before is value:
            continue
        for dim in range(min(value.dim(), 2) if value.layout is torch.strided else 0):
            if value.shape[dim] > 1 and step.before is None:
                what = f"half of argument {position + 1} along dimension {dim + 1} left out"
                found[what] = _with_half(step, position, dim)
    return found


def _with_half(step: Step, position: int, dim: int) -> Callable[[], object]:
    def run() -> Any:
        value: Tensor = step.args[position]
        size = value.shape[dim]
        changed = _cleared(value, dim, (size + 1) // 2, size // 2)
        return step.again(*step.args[:position], changed)

    return run
