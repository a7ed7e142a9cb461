"""Hidden and unlisted workloads of the built-in tasks: larger, of one, unaligned, whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest

from gpu_runner.data.task import Task, Values, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from tests.unit.catalog.judging import cases, problem, task
from tests.unit.catalog.test_tasks import NAMES

NO_SIZES = {"kernel_size", "stride", "padding", "shuffled", "base", "skew"}
"""Whole numbers among the parameters that are no size of an input."""
AT_THE_CAP = 0.95 * 2**30
"""Bytes in float32 beyond which a larger workload would not fit; BF16 has the same ones."""
ALIGNED = 8
NO_ONE = {"simpson_int": "the rule needs three samples"}
ALL_ALIGNED = {"fft": "lengths are powers of two"}
NO_INTEGERS = {
    "histogram": "its inputs are integers, whatever the family",
    "batched_cholesky": "matrices of rounded numbers need not be positive definite",
}
SAY_NOTHING = {"silu_and_mul_bf16": "values of 1 beside gates of hundreds all become 0 in BF16"}
SEEDS = range(1, 4)
TASKS = [(name, kind) for name in NAMES for kind in DeviceKind]


def seen(name: str, kind: DeviceKind, direction: Direction, *, hidden: bool) -> list[Workload]:
    everything = task(name).workloads_for(kind, direction, hidden=True)
    return [workload for workload in everything if workload.hidden is hidden]


def sizes(workload: Workload) -> dict[str, int]:
    parameters = workload.parameters.items()
    return {key: n for key, n in parameters if type(n) is int and key not in NO_SIZES}


def bytes_of(data: Task, workload: Workload, direction: Direction) -> float:
    cost = data.cost(workload, direction)
    assert cost is not None
    return cost.bytes


def in_float32(data: Task, size: float) -> float:
    return size * (2 if data.dtype == "bfloat16" else 1)


def any_size_beyond(hidden: Iterable[Workload], public: Iterable[Workload]) -> bool:
    largest: dict[str, int] = {}
    for workload in public:
        for key, size in sizes(workload).items():
            largest[key] = max(size, largest.get(key, 0))
    return any(size > largest[key] for w in hidden for key, size in sizes(w).items())


@pytest.mark.each_task
@pytest.mark.parametrize(("name", "kind"), TASKS)
def test_a_hidden_workload_is_larger_than_all_public_ones(name: str, kind: DeviceKind) -> None:
    """In bytes; or in one of its sizes, where the largest public one is at the cap."""
    data = task(name)
    for direction in data.directions:
        public = seen(name, kind, direction, hidden=False)
        hidden = seen(name, kind, direction, hidden=True)
        largest = max(bytes_of(data, workload, direction) for workload in public)
        if not any(bytes_of(data, workload, direction) > largest for workload in hidden):
            assert in_float32(data, largest) >= AT_THE_CAP
            assert any_size_beyond(hidden, public)


@pytest.mark.each_task
@pytest.mark.parametrize(("name", "kind"), TASKS)
def test_a_hidden_workload_has_a_size_of_one(name: str, kind: DeviceKind) -> None:
    for direction in task(name).directions:
        hidden = seen(name, kind, direction, hidden=True)
        found = any(size == 1 for workload in hidden for size in sizes(workload).values())
        assert found is (name.removesuffix("_bf16") not in NO_ONE)


@pytest.mark.each_task
@pytest.mark.parametrize(("name", "kind"), TASKS)
def test_a_hidden_workload_has_an_unaligned_size(name: str, kind: DeviceKind) -> None:
    """One above eight, for which a kernel of whole vectors or tiles needs a tail."""
    for direction in task(name).directions:
        hidden = seen(name, kind, direction, hidden=True)
        all_sizes = [size for workload in hidden for size in sizes(workload).values()]
        found = any(size > ALIGNED and size % ALIGNED for size in all_sizes)
        assert found is (name.removesuffix("_bf16") not in ALL_ALIGNED)


@pytest.mark.each_task
@pytest.mark.parametrize(("name", "kind"), TASKS)
def test_a_hidden_workload_is_of_whole_numbers(name: str, kind: DeviceKind) -> None:
    for direction in task(name).directions:
        families = {workload.values for workload in seen(name, kind, direction, hidden=True)}
        assert (Values.INTEGERS in families) is (name.removesuffix("_bf16") not in NO_INTEGERS)


@pytest.mark.each_task
@pytest.mark.parametrize("name", NAMES)
def test_results_of_whole_numbers_are_not_all_zero(name: str) -> None:
    """Where few integers are exact, as in BF16, small ones among large ones become 0."""
    for case in cases(name):
        if case.workload.values is Values.INTEGERS:
            drawn = (
                problem(name).expected(case.workload, case.direction, seed, "cpu") for seed in SEEDS
            )
            found = any(bool((output != 0).any()) for outputs in drawn for output in outputs)
            assert found is (name not in SAY_NOTHING)


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
