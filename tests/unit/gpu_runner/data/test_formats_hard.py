"""Hard inputs of a native task: recognised, asked for on every workload, and never timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import load_task
from gpu_runner.data.task import Values
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.engine.problem.problem import load_problem

SPECIFICATION = """
name = "rooted"
title = "Roots"
abi = "torch"
workloads = [
    {{ name = "n4", parameters = {{ N = 4 }} }},
    {{ name = "n5", hidden = true, parameters = {{ N = 5 }}, values = "{values}" }},
]
"""
REFERENCE = """
import torch
def make_inputs(N): return {"a": torch.ones(N)}
def forward_fn(a): return a.sqrt()
"""
HARD = """
def make_hard_inputs({parameters}): return {{"a": torch.full((N,), 9.0)}}
"""


def write(folder: Path, *, values: str = "hard", parameters: str = "N") -> Path:
    (folder / "task.toml").write_text(SPECIFICATION.format(values=values))
    more = HARD.format(parameters=parameters) if parameters else ""
    (folder / "reference.py").write_text(REFERENCE + more)
    return folder


def test_they_are_drawn_where_they_are_asked_for(tmp_path: Path) -> None:
    task = load_task(write(tmp_path))
    assert task.has_hard_inputs
    own = load_problem(task, tmp_path)
    drawn = [own.draw(each, Direction.FORWARD, 1, "cpu").arguments[0] for each in task.workloads]
    assert [tensor.tolist() for tensor in drawn] == [[1.0] * 4, [9.0] * 5]


def test_every_workload_may_have_them(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, values="drawn"))
    for workload in task.workloads:
        others = task.other_values(workload, DeviceKind.CPU, Direction.FORWARD)
        assert others == (Values.HARD,)
    task = load_task(write(tmp_path))
    hard = task.other_values(task.workloads[1], DeviceKind.CPU, Direction.FORWARD)
    assert hard == (Values.DRAWN,)


def test_a_task_without_them_cannot_ask_for_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="needs the function make_hard_inputs") as caught:
        load_task(write(tmp_path, parameters=""))
    assert caught.value.field == "workloads[1].values"


def test_they_depend_on_the_same_parameters(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must take the parameters of make_inputs"):
        load_task(write(tmp_path, parameters="N, C"))
