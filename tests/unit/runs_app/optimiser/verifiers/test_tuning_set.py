"""Balanced training and held-out kernels."""

from __future__ import annotations

import pytest

from runs_app.optimiser.verifiers.tuning_examples import Kernel, TooFewError, choose


def kernels(**tasks: tuple[int, int]) -> list[Kernel]:
    """Passing and failing kernels of each task."""
    return [
        Kernel(key=f"{task}-{passes}-{n}", task=task, passes=passes)
        for task, counts in tasks.items()
        for passes, count in zip((True, False), counts, strict=True)
        for n in range(count)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_both_sets_are_balanced_and_share_no_task(seed: int) -> None:
    rows = kernels(a=(9, 9), b=(9, 9), c=(9, 2), d=(1, 9), e=(4, 4))
    train, held_out = choose(rows, 10, 6, seed)
    assert [sum(k.passes for k in part) for part in (train, held_out)] == [5, 3]
    assert [len(part) for part in (train, held_out)] == [10, 6]
    assert not {k.task for k in train} & {k.task for k in held_out}
    assert choose(list(reversed(rows)), 10, 6, seed) == (train, held_out)


def test_tasks_take_turns() -> None:
    rows = kernels(big=(50, 50), small=(2, 2), other=(2, 2), last=(9, 9))
    train, _ = choose(rows, 8, 4, 3)
    tasks = [k.task for k in train]
    assert len(set(tasks)) >= 2
    assert max(tasks.count(task) for task in tasks) <= 6


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "0 passing and 0 failing ones of 0 tasks"),
        (kernels(a=(40, 40)), "40 passing and 40 failing ones of 1 tasks"),
        (kernels(a=(40, 1), b=(40, 1)), "80 passing and 2 failing ones of 2 tasks"),
    ],
)
def test_too_few_are_refused_with_counts(rows: list[Kernel], words: str) -> None:
    with pytest.raises(TooFewError, match=words):
        choose(rows, 10, 6, 0)


@pytest.mark.parametrize(("train", "held_out", "field"), [(9, 6, "examples"), (10, 0, "held-out")])
def test_sizes_are_even(train: int, held_out: int, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        choose(kernels(a=(40, 40), b=(40, 40)), train, held_out, 0)
