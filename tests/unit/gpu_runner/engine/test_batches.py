"""Which tasks work on items one by one: their references decide."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gpu_runner.data.task import Part
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.engine.oracle.batches import parts
from gpu_runner.engine.problem.problem import load_problem, write_files
from tests.protocol.evaluating import find_task


def found(name: str, direction: Direction = Direction.FORWARD) -> list[tuple[str, int]]:
    task = find_task(name)
    workload = task.workloads_for(DeviceKind.CPU, direction, hidden=False)[0]
    with write_files(task) as folder:
        problem = load_problem(task, Path(folder))
        return [(p.counted, p.items) for p in parts(problem, workload, direction, 5, "cpu")]


@pytest.mark.parametrize(
    ("name", "counted"),
    [("softmax", "N"), ("matrix_mul", "M"), ("linear", "batch_size"), ("max_pool", "batch_size")],
)
def test_rows_of_a_batch_are_items(name: str, counted: str) -> None:
    assert [each for each, _ in found(name)][-1:] == [counted]
    assert found(name)[-1] == (counted, 1)


@pytest.mark.parametrize(
    "name",
    ["batch_norm", "prefix_sum", "dot_product", "stencil_2d", "matrix_transpose", "spmv_csr"],
)
def test_what_depends_on_the_others_is_no_item(name: str) -> None:
    assert found(name) == []


def test_gradients_of_weights_depend_on_the_whole_batch() -> None:
    assert found("linear", Direction.BACKWARD) == []


def test_a_part_has_the_first_values_of_the_whole() -> None:
    task = find_task("softmax")
    whole = task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=False)[0]
    part = Part.of(whole, "N", 3)
    with write_files(task) as folder:
        problem = load_problem(task, Path(folder))
        few, all_ = (problem.draw(w, Direction.FORWARD, 7, "cpu") for w in (part, whole))
    mine, theirs = few.arguments[0], all_.arguments[0]
    assert isinstance(mine, torch.Tensor)
    assert isinstance(theirs, torch.Tensor)
    assert torch.equal(mine, theirs[:3])
    assert len(theirs) > 3
