"""One step of asking whether a task is sound: every mutant and honest kernel on one call."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.honest import Family, honest_kernels
from gpu_runner.engine.mutants import LARGEST, Call, Outputs, mutants_of, tried
from gpu_runner.engine.native_problem import BASELINE
from gpu_runner.engine.problem import Problem

MOST_WORDS = 300
"""Of what a baseline's error says."""


class Soundness:
    """Answers for one task; it keeps the last call, whose result is the next one's stale result."""

    def __init__(self, problem: Problem, device: str) -> None:
        """`device` is "cpu" or "cuda"."""
        self._problem, self._device = problem, device
        self._earlier: tuple[tuple[str, Direction], Call] | None = None

    def step(
        self, workload: Workload, direction: Direction, seed: int, settled: Collection[str]
    ) -> dict[str, Any]:
        """Try all mutants but those in `settled`, and all honest kernels, on one call.

        {"honest": {name: [scaled error, what is wrong]}, "mutants": [[name, state, scaled error]],
        "output_bytes": of one call}; a state is failed, passed, or same (see `mutants.tried`).
        """
        call = Call(self._problem, workload, direction, seed, self._device)
        key = (workload.name, direction)
        before = self._earlier[1] if self._earlier and self._earlier[0] == key else None
        found = []
        for mutant in mutants_of(call, before):
            if mutant.name not in settled:
                result = tried(mutant, call)
                if result is not None:
                    found.append([mutant.name, *result])
        self._earlier = (key, call)
        size = sum(output.numel() * output.element_size() for output in call.eager)
        return {"honest": _honest(call), "mutants": found, "output_bytes": size}


def _honest(call: Call) -> dict[str, tuple[float, str]]:
    found = {"reference": call.explain(call.eager)[1:]}
    for name, family in honest_kernels().items():
        try:
            outputs = honest_result(family, call)
        except torch.OutOfMemoryError:  # of a device: it is no kernel's way there
            continue
        if outputs is not None:
            found[name] = call.explain(outputs)[1:]
    if call.problem.has_baseline(call.direction):
        found[BASELINE] = _baseline(call)
    return found


def honest_result(family: Family, call: Call) -> Outputs | None:
    """What a kernel of that family gives; None where the reference does nothing of its kind."""
    if family.narrow and not call.is_narrow:
        return None
    if family.unless and family.unless & call.trace().operations():
        return None
    mode = family.mode()
    outputs = call.run(mode)
    if family.written is None:
        return outputs if mode.replaced or family.instead is None else None
    rounded = [
        _is_rounded(output, eager) for output, eager in zip(outputs, call.eager, strict=True)
    ]
    if not any(rounded):
        return None
    pairs = zip(outputs, rounded, strict=True)
    return tuple(family.written(output) if narrow else output for output, narrow in pairs)


def _is_rounded(output: Tensor, eager: Tensor) -> bool:
    """Whether what was computed is rounded to a narrower dtype when it is handed out."""
    return output.is_floating_point() and output.element_size() > eager.element_size()


def _baseline(call: Call) -> tuple[float, str]:
    """The task's own baseline: one that is wrong is none, and does no other harm."""
    try:
        outputs = call.own_baseline()
        if len(outputs) == len(call.expected):
            return call.explain(outputs)[1:]
    except Exception as error:  # whatever its code does wrong, and other shapes
        return LARGEST, f"{type(error).__name__}: {error}"[:MOST_WORDS]
    return LARGEST, f"gives {len(outputs)} outputs, not {len(call.expected)}"
