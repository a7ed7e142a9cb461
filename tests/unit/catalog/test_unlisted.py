"""Unlisted workloads of the built-in tasks: near the listed ones in every size, as much work."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gpu_runner.data.task import Task, Values, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from tests.unit.catalog.judging import task
from tests.unit.catalog.test_tasks import NAMES

LEAST = 4
POWERS_OF_TWO = {"fft"}
"""Tasks of which all sizes are powers of two: too few are left that are near the listed ones."""
FARTHEST = 2.0
ALIKE = 1.35
MOST_MEMORY = 1.3
KINDS = [(name, kind) for name in NAMES for kind in DeviceKind]


def listed(data: Task, kind: DeviceKind) -> list[Workload]:
    return [w for w in data.workloads if kind in w.devices and not w.hidden]


def unlisted(data: Task, kind: DeviceKind) -> list[Workload]:
    return [w for w in data.workloads if kind in w.devices and w.unlisted]


def changes(workload: Workload, other: Workload) -> dict[str, float]:
    """The logarithms of the ratios of their numbers; infinite where one cannot be of the other."""
    pairs = {key: (value, other.parameters[key]) for key, value in workload.parameters.items()}
    return {key: _change(*pair) for key, pair in pairs.items()}


def _change(one: Any, other: Any) -> float:
    if one == other:
        return 0.0
    is_ratio = all(isinstance(each, int | float) and each > 0 for each in (one, other))
    return abs(math.log(one / other)) if is_ratio else math.inf


def partner(workload: Workload, data: Task, kind: DeviceKind) -> Workload:
    """The nearest listed workload of the same directions."""
    found = [w for w in listed(data, kind) if set(w.directions) >= set(workload.directions)]
    return min(found, key=lambda w: max(changes(workload, w).values()))


def work_of(data: Task, workload: Workload, attribute: str) -> float:
    direction = next(d for d in (Direction.FORWARD, Direction.BACKWARD) if d in workload.directions)
    value: float = getattr(data.cost(workload, direction), attribute)
    return value


def varying(data: Task, kind: DeviceKind) -> set[str]:
    everything = [w for w in data.workloads if kind in w.devices]
    names = everything[0].parameters
    return {key for key in names if len({w.parameters[key] for w in everything}) > 1}


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_there_are_enough_and_half_of_them_are_odd(name: str, kind: DeviceKind) -> None:
    data = task(name)
    found = unlisted(data, kind)
    assert all(workload.values is Values.DRAWN for workload in found)
    if name.removesuffix("_bf16") in POWERS_OF_TWO:
        assert len(found) >= LEAST - 1
        return
    assert len(found) >= LEAST
    keys = varying(data, kind)
    odd = [w for w in found if any(_is_odd(w, key, data, kind) for key in keys)]
    assert 2 * len(odd) >= len(found)


def _is_odd(workload: Workload, key: str, data: Task, kind: DeviceKind) -> bool:
    """Whether it has an odd size that its partner has not."""
    value, near = workload.parameters[key], partner(workload, data, kind).parameters[key]
    return type(value) is int and value not in {1, near} and value % 2 == 1


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_sizes_are_near_a_listed_workload_s(name: str, kind: DeviceKind) -> None:
    data = task(name)
    for workload in unlisted(data, kind):
        farthest = max(changes(workload, partner(workload, data, kind)).values())
        assert 0 < farthest <= math.log(FARTHEST), workload.name


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_together_they_are_as_much_work_as_listed_ones(name: str, kind: DeviceKind) -> None:
    """A kernel's mean speedup on them is compared with that on the listed ones."""
    data = task(name)
    pairs = [(each, partner(each, data, kind)) for each in unlisted(data, kind)]
    ratios = [work_of(data, a, "weight") / work_of(data, b, "weight") for a, b in pairs]
    assert abs(sum(map(math.log, ratios)) / len(ratios)) <= math.log(ALIKE)


@pytest.mark.parametrize("name", NAMES)
def test_none_needs_far_more_memory_than_listed_ones(name: str) -> None:
    """On a GPU, whose memory the largest nearly fill."""
    data, kind = task(name), DeviceKind.CUDA
    largest = max(work_of(data, w, "bytes") for w in listed(data, kind))
    for workload in unlisted(data, kind):
        assert work_of(data, workload, "bytes") <= MOST_MEMORY * largest, workload.name
