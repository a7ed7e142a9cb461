"""Finds a parameter that counts independent items, so that some of them can be called alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gpu_runner.data.task import Part, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.problem import Problem

_AGREE = 1e-9  # chosen: far above float64's rounding, and far below what an item could add


def parts(
    problem: Problem, workload: Workload, direction: Direction, seed: int, device: str
) -> list[Part]:
    """Half of the batch, and one item of it; none where results depend on the other items.

    The reference decides, in float64: alone, the first items must give the same results as in the
    whole batch. Outputs of one dimension don't count: their elements are no items.
    """
    among = problem.expected(workload, direction, seed, device)

    def stands_alone(part: Part) -> bool:
        try:
            alone = problem.expected(part, direction, seed, device)
        except Exception:  # the task makes no such size, or other parameters depend on it
            return False
        return _same_items(alone, among)

    for name, count in workload.parameters.items():
        if type(count) is int and count > 1:
            sizes = dict.fromkeys((count // 2, 1))
            found = [Part.of(workload, name, items) for items in sizes]
            if all(map(stands_alone, found)):
                return found
    return []


def _same_items(alone: Sequence[Tensor], among: Sequence[Tensor]) -> bool:
    if len(alone) != len(among):
        return False
    pairs = list(zip(alone, among, strict=True))
    are_items = any(mine.ndim > 1 and mine.shape != whole.shape for mine, whole in pairs)
    return are_items and all(_agrees(*pair) for pair in pairs)


def _agrees(mine: Tensor, whole: Tensor) -> bool:
    if mine.ndim != whole.ndim or mine.shape[1:] != whole.shape[1:]:
        return False
    first = whole[: len(mine)] if whole.ndim else whole
    if not mine.is_floating_point():
        return bool(torch.equal(mine, first))
    tolerance = _AGREE * float(first.nan_to_num().double().square().mean().sqrt())
    return torch.allclose(mine, first, rtol=_AGREE, atol=tolerance, equal_nan=True)
