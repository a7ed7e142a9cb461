"""Chooses kernels to tune a verifier on, and others, of other tasks, to check it with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from runs_app.evolve.history import draw

_TRIES = 200


@dataclass(frozen=True)
class Kernel:
    """A kernel of which hardware has told whether the verifier should let it pass."""

    key: str
    task: str
    passes: bool


class TooFewError(ValueError):
    """There are not enough kernels; the message counts what is there and what is needed."""


def choose(
    kernels: Sequence[Kernel], train: int, held_out: int, seed: int
) -> tuple[list[Kernel], list[Kernel]]:
    """Training and held-out kernels: half of each pass, and no task is in both.

    Tasks are drawn from `seed`; within a set they take turns, so that none fills it. Raises
    `TooFewError`, and `ValueError` for odd or too small sizes.
    """
    for name, size in (("examples", train), ("held-out", held_out)):
        if size < 2 or size % 2:
            raise ValueError(f"{name}: give an even number of at least 2, half of it must fail")
    by_task = defaultdict(list)
    for kernel in sorted(kernels, key=lambda k: (k.task, k.key)):
        by_task[kernel.task].append(kernel)
    for attempt in range(_TRIES):
        tasks = sorted(by_task)
        draw(seed, "split", attempt).shuffle(tasks)
        cut = _first_enough([by_task[task] for task in tasks], held_out // 2)
        held = [kernel for task in tasks[:cut] for kernel in by_task[task]]
        rest = [kernel for task in tasks[cut:] for kernel in by_task[task]]
        if _enough(held, held_out // 2) and _enough(rest, train // 2):
            return _balanced(rest, train // 2, seed), _balanced(held, held_out // 2, seed)
    raise TooFewError(_what_is_missing(kernels, train, held_out))


def _first_enough(groups: Sequence[Sequence[Kernel]], each: int) -> int:
    """How many of the first tasks it takes to have enough of both kinds."""
    found: list[Kernel] = []
    for count, group in enumerate(groups, 1):
        found += group
        if _enough(found, each):
            return count
    return len(groups)


def _enough(kernels: Sequence[Kernel], each: int) -> bool:
    passing = sum(kernel.passes for kernel in kernels)
    return passing >= each and len(kernels) - passing >= each


def _balanced(kernels: Sequence[Kernel], each: int, seed: int) -> list[Kernel]:
    chosen: list[Kernel] = []
    for passes in (True, False):
        by_task: dict[str, list[Kernel]] = defaultdict(list)
        for kernel in kernels:
            if kernel.passes is passes:
                by_task[kernel.task].append(kernel)
        for task, group in by_task.items():
            draw(seed, "order", task, passes).shuffle(group)
        turns = sorted(
            (turn, task) for task, group in by_task.items() for turn in range(len(group))
        )
        chosen += [by_task[task][turn] for turn, task in turns[:each]]
    draw(seed, "mix").shuffle(chosen)
    return chosen


def _what_is_missing(kernels: Sequence[Kernel], train: int, held_out: int) -> str:
    counts = Counter(kernel.passes for kernel in kernels)
    tasks = len({kernel.task for kernel in kernels})
    return (
        f"it takes {train // 2} passing and {train // 2} failing kernels to train on, and "
        f"{held_out // 2} and {held_out // 2} of other tasks to check with; there are "
        f"{counts[True]} passing and {counts[False]} failing ones of {tasks} tasks"
    )
