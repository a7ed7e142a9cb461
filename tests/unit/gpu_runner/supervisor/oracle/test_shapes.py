"""Other shapes: which a task allows, and that only those that work are used."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.protocol import SHAPES_DRAWN
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.client import Oracle, OracleError, OutOfSharedMemory
from gpu_runner.supervisor.oracle.shapes import DrawnShapes, other_shapes

CPU, FORWARD = DeviceKind.CPU, Direction.FORWARD


def with_sizes(*sizes: dict[str, Any], hidden: int = 0) -> Task:
    """A task whose workloads have these parameters; the last `hidden` of them are hidden."""
    public = len(sizes) - hidden
    workloads = tuple(
        Workload(name=f"w{n}", parameters=each, hidden=n >= public) for n, each in enumerate(sizes)
    )
    task = find_task("softmax")
    plain = replace(task.tolerance, reduction="1")
    return replace(task, workloads=workloads, tolerance=plain, work={})


def drawn(task: Task, count: int = 8) -> list[dict[str, Any]]:
    """Parameters of the shapes that are drawn for the task on a CPU."""
    found = other_shapes(task, CPU, FORWARD, random.Random(3), count)
    return [dict(workload.parameters) for workload in found]


def test_a_product_gets_sizes_that_no_tile_divides() -> None:
    found = drawn(find_task("matrix_mul"))
    assert len(found) == 8
    for index, sizes in enumerate(found):
        assert all(32 <= sizes[name] <= 64 for name in "MNK")
        changed = [sizes[name] for name in "MNK" if sizes[name] != 64]
        assert changed
        assert len(changed) == 3 or index % 4 > 1
        assert all((size % 2 == 0) == (index % 2 == 1) and size % 32 for size in changed)
    assert any(64 in sizes.values() for sizes in found)


def test_what_all_sizes_have_in_common_is_kept() -> None:
    multiples = with_sizes({"n": 64}, {"n": 256}, {"n": 40}, hidden=1)
    assert {sizes["n"] for sizes in drawn(multiples)} == {40, 48, 56}
    tied = with_sizes({"a": 64, "b": 128}, {"a": 100, "b": 200})
    assert all(2 * sizes["a"] == sizes["b"] for sizes in drawn(tied))
    ordered = with_sizes({"a": 60, "b": 64}, {"a": 33, "b": 35}, {"a": 50, "b": 99}, hidden=2)
    assert drawn(ordered)
    assert all(sizes["a"] < sizes["b"] for sizes in drawn(ordered))


@pytest.mark.parametrize(
    "sizes",
    [
        ({"n": 64}, {"n": 1024}),  # powers of two, as of a transform
        ({"n": 100},),  # nothing says that it may change
        ({"k": 3}, {"k": 5}),  # no extent
        ({"x": 1.5}, {"x": 2.5}),
        ({"deep": True}, {"deep": False}),
    ],
)
def test_where_nothing_says_that_a_size_is_free_it_stays(sizes: tuple[dict[str, Any], ...]) -> None:
    assert drawn(with_sizes(*sizes)) == []


class Asked:
    """An oracle whose reference fails on some shapes."""

    def __init__(
        self, fails: int, running: bool = True, error: type[OracleError] = OracleError
    ) -> None:
        self.fails, self.running, self.error, self.asked = fails, running, error, 0

    def own_error(self, workload: Workload, direction: Direction, seed: int) -> float:
        self.asked += 1
        if self.asked <= self.fails:
            raise self.error("shapes do not match")
        return 0.9 if self.asked == self.fails + 1 else 0.1


def shapes(folder: Path) -> DrawnShapes:
    config = SupervisorConfig(kind=CPU, device="cpu", cache_folder=folder)
    return DrawnShapes(find_task("matrix_mul"), FORWARD, config, random.Random(5))


def test_only_shapes_on_which_the_reference_works_are_used_and_remembered(tmp_path: Path) -> None:
    oracle = Asked(fails=1)
    found = shapes(tmp_path).some(cast(Oracle, oracle), SHAPES_DRAWN)
    assert len(found) == SHAPES_DRAWN - 2  # one failed, and one comes too close to the bound
    again = shapes(tmp_path)
    assert {w.name for w in again.task.workloads} >= {w.name for w in found}
    assert {w.name for w in again.some(cast(Oracle, oracle), SHAPES_DRAWN)} == {
        w.name for w in found
    }
    assert oracle.asked == SHAPES_DRAWN
    assert len(again.some(cast(Oracle, oracle), 1)) == 1


def test_a_shape_of_which_an_oracle_dies_is_asked_once(tmp_path: Path) -> None:
    with pytest.raises(OracleError):
        shapes(tmp_path).some(cast(Oracle, Asked(fails=1, running=False)), 1)
    assert shapes(tmp_path).some(cast(Oracle, Asked(fails=9, running=False)), 1) == []


def test_a_shape_for_which_others_leave_no_memory_is_asked_again(tmp_path: Path) -> None:
    with pytest.raises(OutOfSharedMemory):
        shapes(tmp_path).some(cast(Oracle, Asked(1, error=OutOfSharedMemory)), SHAPES_DRAWN)
    assert shapes(tmp_path).some(cast(Oracle, Asked(0)), SHAPES_DRAWN)
