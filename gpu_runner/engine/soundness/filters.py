"""What a task's filters need to know of one workload: numbers, judged by the task's own bound."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.arguments import input_tensors, leaves, output_names
from gpu_runner.engine.problem.problem import Problem, ProblemError, map_tensors
from gpu_runner.engine.soundness.mutants import Call
from gpu_runner.engine.soundness.operations import (
    REDUCTIONS,
    WITHOUT_ARITHMETIC,
    Interpreter,
    name_of,
    taken_apart,
)

_RUNS = 5  # of the eager baseline, of which the quickest counts
_DOUBLE = 2.0  # what a scalar argument is multiplied by
_MOVES = WITHOUT_ARITHMETIC | {
    "_sparse_coo_tensor_with_dims_and_tensors", "cat", "complex", "constant_pad_nd", "embedding",
    "flip", "gather", "index", "index_select", "masked_fill", "masked_fill_", "nan_to_num",
    "repeat", "roll", "scatter", "scatter_", "slice_scatter", "stack", "take", "tril", "triu",
    "where",
}  # fmt: skip
_WRITTEN = {"elu": 3, "sigmoid": 4}
"""Operations for each element of a result, where they are more than one."""
_READ = dict.fromkeys(REDUCTIONS, 1) | {
    "_safe_softmax": 5, "cumprod": 1, "cumsum": 1, "dot": 2,
    "max_pool2d_with_indices_backward": 1, "max_pool3d_with_indices_backward": 1, "std": 3,
    "var": 3, "var_mean": 3,
}  # fmt: skip
"""Operations for each element that is read: of a variance a difference, a square and their sum."""
_ADDED = {
    "index_add": 3, "index_add_": 3, "scatter_add": 3, "scatter_add_": 3, "scatter_reduce": 3,
    "scatter_reduce_": 3,
}  # fmt: skip
"""Operation -> place of the values that it adds to what is there."""
_PUT = {"index_put", "index_put_"}  # which add only where they are told to
_WINDOWED = {"avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices"}
_TRANSFORMS = {"_fft_c2c", "_fft_c2r", "_fft_r2c"}


def facts_of(
    problem: Problem, workload: Workload, direction: Direction, seeds: Sequence[int], device: str
) -> dict[str, object]:
    """Numbers of one workload; `seeds` are two or more, each of which draws a call.

    {"outputs": {name: {"zeros", "other_draw", "axes": [...]}}, "arguments": {name: true if a change
    of it alone makes the result wrong}, "bytes": that a call reads and writes, "flops": of its
    floating-point arithmetic, "uncounted": operations whose arithmetic nobody can count,
    "eager_ns"}. "zeros" is the share of elements for which zero is within the bound,
    "other_draw" those for which the element of another draw is, "axes" those for which the
    neighbour along the axis is (None for axes of one element); each is the smallest over the seeds.
    """
    calls = [Call(problem, workload, direction, seed, device) for seed in seeds]
    names = output_names(problem.task, len(calls[0].expected))
    flops, uncounted = count_flops(problem.function(direction), _copies(calls[0]))
    return {
        "outputs": {name: _output(calls, index) for index, name in enumerate(names)},
        "arguments": _sensitivity(calls[0], calls[1]),
        "bytes": _bytes(calls[0], workload),
        "flops": flops,
        "uncounted": sorted(uncounted),
        "eager_ns": _eager_ns(calls[0]),
    }


def _output(calls: Sequence[Call], index: int) -> dict[str, object]:
    first = calls[0].expected[index]
    return {
        "zeros": min(c.share(index, torch.zeros_like(c.expected[index])) for c in calls),
        "other_draw": min(
            (
                call.share(index, other.expected[index])
                for call, other in pairwise(calls)
                if call.expected[index].shape == other.expected[index].shape
            ),
            default=0.0,
        ),
        "axes": [
            min(c.share(index, c.expected[index].roll(1, axis)) for c in calls)
            if first.shape[axis] > 1
            else None
            for axis in range(first.dim())
        ],
    }


def another(value: float) -> float:
    """A parameter of another value: the next number, twice a real one (1 for 0), the other flag."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value * _DOUBLE or 1.0


def _sizes(call: Call) -> set[int]:
    """Every number that may stand for a size: whoever changes one alone asks for another shape."""
    tensors = [t for value in call.drawn.arguments for t in leaves(value)] + list(call.expected)
    return {size for tensor in tensors for size in (tensor.numel(), *tensor.shape)}


def _sensitivity(call: Call, other: Call) -> dict[str, bool]:
    """For each argument: does the result go wrong where it alone is of another draw?"""
    found: dict[str, bool] = {}
    sizes = _sizes(call)
    for index, name in enumerate(call.drawn.names):
        old, new = call.drawn.arguments[index], other.drawn.arguments[index]
        if isinstance(old, bool | float) or (isinstance(old, int) and old not in sizes):
            new = another(old)
        elif not any(tensor.numel() for tensor in leaves(old)):
            continue
        arguments = list(call.drawn.arguments)
        arguments[index] = new
        try:
            outputs = call.run(Interpreter(), exactly=True, arguments=arguments)
            found[name] = call.judge(outputs)[0]
        except ProblemError:
            raise
        except Exception:  # it makes no sense beside the others: then it matters
            found[name] = True
    return found


def _bytes(call: Call, workload: Workload) -> int:
    read = input_tensors(call.task, workload, call.drawn)
    return sum(t.numel() * t.element_size() for t in (*read, *call.eager))


def _eager_ns(call: Call) -> float:
    """The quickest of a few runs of the baseline, not measured as a submission is."""
    function, times = call.problem.baseline(call.direction), []
    for _ in range(_RUNS):
        arguments = _copies(call)
        _wait(call.device)
        began = time.perf_counter_ns()
        with torch.no_grad():
            function(*arguments)
        _wait(call.device)
        times.append(time.perf_counter_ns() - began)
    return float(min(times))


def _copies(call: Call) -> tuple[object, ...]:
    copies: tuple[object, ...] = map_tensors(torch.clone, call.drawn.arguments)
    return copies


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def count_flops(
    function: Callable[..., object], arguments: tuple[object, ...]
) -> tuple[int, set[str]]:
    """Operations of one run, and the names of those that nobody here can count.

    A multiplication and a sum are two; a comparison, a root or an exponential is one. What products
    and convolutions need is PyTorch's own count. Integers may be work or mere places: whether a
    reference that computes with nothing else does any is not known.
    """
    products = FlopCounterMode(
        display=False, custom_mapping={torch.ops.aten.mm: _product, torch.ops.aten.mv: _product}
    )
    others = _Others()
    # Fused attention is counted for some devices, shapes and versions of torch only.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), products, others:
        function(*arguments)
    flops = int(products.get_total_flops() + others.flops)
    return flops, others.unknown if flops else others.unknown | others.integers


def _product(first: Tensor, second: Tensor, **_: object) -> int:
    return 2 * _size(first) * (second.shape[1] if second.dim() > 1 else 1)


_product._get_raw = True  # type: ignore[attr-defined]  # called with tensors, not with shapes


class _Others(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up what is no product."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0.0
        self.unknown: set[str] = set()
        self.integers: set[str] = set()  # operations on nothing but them

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        parts = taken_apart(self, func, args, kwargs or {})
        if parts is not NotImplemented:
            return parts
        result = func(*args, **(kwargs or {}))
        name, packet = name_of(func), getattr(func, "overloadpacket", None)
        if name in _MOVES or name == "mv" or packet in flop_registry or _is_view(func):
            return result
        if not any(map(_is_real, (*_tensors(args), *_tensors(result)))):
            self.integers.add(name)
            return result
        counted = _count(func, args, result)
        if counted is None:
            self.unknown.add(name)
        else:
            self.flops += counted
        return result


def _count(func: Callable[..., object], args: tuple[object, ...], result: object) -> float | None:
    """Operations of one step; None if nobody here can count them."""
    name = name_of(func)
    if torch.Tag.pointwise in getattr(func, "tags", ()):
        written = sum(map(_size, _tensors(result)))
        return float(written * _WRITTEN.get(name.rstrip("_"), 1))
    return _listed(name, args, sum(map(_size, filter(_is_real, _tensors(result)))))


def _listed(name: str, args: tuple[Any, ...], written: int) -> float | None:
    """Operations of one step that is not pointwise; `written` are the elements of its results."""
    if name in _READ:
        return _READ[name] * _size(args[0])
    if name in _PUT:
        return _size(args[2]) if len(args) > 3 and args[3] else 0
    if name in _ADDED:
        return _size(args[_ADDED[name]])
    if name in _WINDOWED:
        return float(written * math.prod(args[1]))
    if name in _TRANSFORMS:
        return 5 * written * math.log2(max(2, math.prod(args[0].shape[dim] for dim in args[1])))
    if name == "linalg_cholesky_ex":
        return float(_size(args[0]) * args[0].shape[-1] / 3)
    if name == "cholesky_solve":
        return float(2 * _size(args[0]) * args[1].shape[-1])
    return None


def _size(tensor: Tensor) -> int:
    """Its elements: what a sparse one leaves out is not computed."""
    return tensor.numel() if tensor.layout is torch.strided else int(tensor._nnz())


def _tensors(values: object) -> Iterator[Tensor]:
    for value in values if isinstance(values, tuple | list) else (values,):
        if isinstance(value, Tensor):
            yield value


def _is_real(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _is_view(func: Callable[..., object]) -> bool:
    return bool(getattr(func, "is_view", False))
