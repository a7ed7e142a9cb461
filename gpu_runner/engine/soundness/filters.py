"""What a task's filters need to know of one workload: numbers, judged by the task's own bound."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import torch

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.arguments import input_tensors, leaves, output_names
from gpu_runner.engine.problem.problem import Problem, ProblemError, map_tensors
from gpu_runner.engine.soundness.arithmetic import count_flops
from gpu_runner.engine.soundness.mutants import Call
from gpu_runner.engine.soundness.operations import Interpreter

_RUNS = 5  # of the eager baseline, of which the quickest counts
_DOUBLE = 2.0  # what a scalar argument is multiplied by


def facts_of(
    problem: Problem,
    workload: Workload,
    direction: Direction,
    seeds: Sequence[int],
    device: str,
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
