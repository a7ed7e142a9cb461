"""Whose turn it is: each workload once in the task's order, and then as the draw falls."""

from __future__ import annotations

import random
from contextlib import closing
from typing import cast

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.collected import Collected
from gpu_runner.supervisor.measure.staging import Memory
from gpu_runner.supervisor.oracle.client import Oracle

WORKLOADS = [Workload(name=name, parameters={}) for name in "abcd"]


def order(seed: int) -> str:
    """The names of twelve calls, one after the other."""
    config = SupervisorConfig(kind=DeviceKind.CPU, device="cpu")
    collected = {workload.name: Collected() for workload in WORKLOADS}
    names = ""
    with closing(Arena("samples")) as samples:
        bench = Bench(cast(Oracle, None), cast(Memory, None), samples, config, random.Random(seed))
        for _ in range(12):
            name = bench._whose_turn(WORKLOADS, collected).name
            collected[name].seeds.append(1)
            names += name
    return names


def test_first_calls_come_in_the_tasks_order_and_later_ones_in_none() -> None:
    orders = [order(seed) for seed in range(5)]
    assert {names[:4] for names in orders} == {"abcd"}
    assert len({names[4:] for names in orders}) == 5
