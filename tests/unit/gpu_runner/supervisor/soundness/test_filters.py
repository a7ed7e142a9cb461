"""Filters flag what robust-kbench's filters were made for, with the numbers beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.formats import load_task
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.soundness.filters import find
from gpu_runner.supervisor.soundness.soundness import survey

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

TASK = """
name = "weak"
title = "Weak"
abi = "torch"
dtype = "float32"
[work.forward]
flops = "n"
bytes = "136 * n"
[[workloads]]
name = "n64"
parameters = { n = 64 }
"""

WEAK = """
import torch

def make_inputs(n):
    rows = torch.randn(n).expand(8, n).contiguous()
    numbers = {"slope": 0.0, "times": 2, "fast": True, "length": n}
    return {"x": rows, "bias": torch.zeros(n), "gate": torch.randn(n), **numbers}

def forward_fn(x, bias, gate, slope, times, fast, length):
    return torch.relu(x - 4) + bias, (x + 0 * gate) * times + slope, torch.ones_like(x)
"""


def weak_task(folder: Path) -> Task:
    (folder / "task.toml").write_text(TASK)
    (folder / "reference.py").write_text(WEAK)
    return load_task(folder)


@needs_jail
def test_a_weak_task_is_flagged_where_it_is_weak(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    report = survey(weak_task(tmp_path), config, seeds=2, most_seeds=2)
    assert not report["passed"]
    states = {finding["name"]: finding["passed"] for finding in report["filters"]}
    assert {name for name, passed in states.items() if passed is False} == {
        "output range: output[0]",  # next to nothing passes the relu
        "output deviation: output[0]",
        "output deviation: output[2]",  # ones, whatever the inputs
        "output axis 0: output[0]",
        "output axis 1: output[0]",
        "output axis 0: output[1]",  # equal rows
        "output axis 0: output[2]",
        "output axis 1: output[2]",
        "input impact: bias",  # always zero
        "input impact: gate",
        "input impact: fast",
        "work: flops",  # one an element: it has several
    }
    assert states["input impact: slope"]  # another one than 0 is tried
    assert states["input impact: times"]
    assert "input impact: length" not in states  # a size: another one is another workload
    assert states["input impact: x"]
    assert states["output range: output[1]"]
    assert states["work: bytes"]
    assert states["baseline"] is None


N100 = Workload(name="n", parameters={"n": 100})


def found_by(
    folder: Path,
    ask: Callable[..., dict[str, Any]],
    *workloads: Workload,
    direction: Direction = Direction.FORWARD,
) -> list[dict[str, Any]]:
    config = SupervisorConfig(cache_folder=folder)
    return list(find(weak_task(folder), direction, workloads or (N100,), ask, config))


def facts(**changes: Any) -> dict[str, Any]:
    good = {"zeros": 0.0, "other_draw": 0.0, "axes": [0.0]}
    return {
        "outputs": {"out": good},
        "arguments": {"x": True},
        "bytes": 13_600,
        "flops": 100,
        "uncounted": [],
        "eager_ns": 1e6,
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "flagged"),
    [
        ({}, set()),
        ({"bytes": 6800}, {"work: bytes"}),  # the formula has more than a call moves
        ({"bytes": 68_000}, {"work: bytes"}),
        ({"flops": 1000}, {"work: flops"}),
        ({"flops": 30}, {"work: flops"}),
        ({"flops": 0}, {"work: flops"}),  # a copy, say
        ({"flops": 1000, "uncounted": ["sort"]}, set()),
        ({"arguments": {"x": False}}, {"input impact: x"}),
    ],
)
def test_numbers_beyond_a_limit_are_flagged(
    tmp_path: Path, changes: dict[str, Any], flagged: set[str]
) -> None:
    found = found_by(tmp_path, lambda *_: facts(**changes))
    assert {f["name"] for f in found if f["passed"] is False} == flagged
    assert all(f["text"] and f["limit"] for f in found)


def test_a_gradient_need_not_depend_on_every_input(tmp_path: Path) -> None:
    for direction, passed in ((Direction.FORWARD, False), (Direction.BACKWARD, None)):
        found = found_by(tmp_path, lambda *_: facts(arguments={"bias": False}), direction=direction)
        assert [f["passed"] for f in found if f["name"] == "input impact: bias"] == [passed]


def test_an_argument_may_matter_on_any_workload(tmp_path: Path) -> None:
    def ask(workload: Workload, *_: object) -> dict[str, Any]:
        return facts(arguments={"x": workload.name == "small"})

    small = dataclasses.replace(N100, name="small", hidden=True)
    found = found_by(tmp_path, ask, small, N100)
    (impact,) = [f for f in found if f["name"] == "input impact: x"]
    assert (impact["passed"], impact["workload"]) == (True, "small")


def test_an_argument_that_only_some_workloads_have_is_looked_at(tmp_path: Path) -> None:
    """Neither the largest nor the smallest listed workload has a bias."""
    workloads = [
        Workload(name="small", parameters={"n": 100, "bias": False}),
        Workload(name="biased", parameters={"n": 200, "bias": True}, hidden=True),
        Workload(name="more", parameters={"n": 300, "bias": True}, hidden=True),
        Workload(name="large", parameters={"n": 400, "bias": False}),
    ]
    asked = []

    def ask(workload: Workload, *_: object) -> dict[str, Any]:
        asked.append(workload.name)
        bias = {"bias": False} if workload.parameters["bias"] else {}
        return facts(arguments={"x": True, **bias})

    found = found_by(tmp_path, ask, *workloads)
    assert [f["passed"] for f in found if f["name"] == "input impact: bias"] == [False]
    no_bias = {"n": 5, "bias": False}
    workloads[1:3] = [dataclasses.replace(w, parameters=no_bias) for w in workloads[1:3]]
    asked.clear()
    found_by(tmp_path, ask, *workloads)
    assert asked == ["large", "small"]
