"""What a request to the oracle is about."""

from __future__ import annotations

from gpu_runner.data.task import Part, Workload
from gpu_runner.data.verdict import Direction


def of_call(workload: Workload, direction: Direction, seed: int) -> dict[str, object]:
    """A single call."""
    return {**of_work(workload, direction), "seed": seed}


def of_work(workload: Workload, direction: Direction) -> dict[str, object]:
    """Any call with this workload."""
    work: dict[str, object] = {"values": workload.values, "direction": direction}
    if isinstance(workload, Part):
        part = {"counted": workload.counted, "items": workload.items}
        return {**work, "workload": workload.whole.name, "part": part}
    return {**work, "workload": workload.name}
