"""Whose turn it is: each workload once in the task's order, and then as the draw falls."""

from __future__ import annotations

import random

from gpu_runner.data.task import Workload
from gpu_runner.supervisor.measure.collected import Collected
from gpu_runner.supervisor.measure.turns import stays_in_place, whose_turn

WORKLOADS = [Workload(name=name, parameters={}) for name in "abcd"]


def order(seed: int) -> str:
    """The names of twelve calls, one after the other."""
    collected = {workload.name: Collected() for workload in WORKLOADS}
    rng = random.Random(seed)
    names = ""
    for _ in range(12):
        name = whose_turn(WORKLOADS, collected, rng).name
        collected[name].seeds.append(1)
        names += name
    return names


def test_first_calls_come_in_the_tasks_order_and_later_ones_in_none() -> None:
    orders = [order(seed) for seed in range(5)]
    assert {names[:4] for names in orders} == {"abcd"}
    assert len({names[4:] for names in orders}) == 5


def test_the_second_call_stays_in_place_and_later_ones_as_the_draw_falls() -> None:
    rng = random.Random(1)
    assert all(stays_in_place(1, rng) for _ in range(20))
    assert {stays_in_place(calls, rng) for calls in range(2, 20)} == {True, False}
