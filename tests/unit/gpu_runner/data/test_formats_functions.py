"""What a native task may define beside its reference: a baseline, a verifier, hard inputs."""

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
directions = {directions}
workloads = [
    {{ name = "n4", parameters = {{ N = 4 }} }},
    {{ name = "n5", hidden = true, parameters = {{ N = 5 }}, values = "{values}" }},
]
{more}
"""
REFERENCE = """
import torch
def make_inputs(N): return {"a": torch.ones(N), "b": 1}
def forward_fn(a, b): return a.sqrt()
"""
BACKWARD = "def backward_fn(a, b): ...\n"
HARD = 'def make_hard_inputs(N): return {"a": torch.full((N,), 9.0), "b": 1}\n'
VERIFIER = "def verify_fn(inputs, outputs): ...\n"
BOTH = '["forward", "backward"]'


def write(
    folder: Path,
    functions: str,
    *,
    directions: str = '["forward"]',
    values: str = "drawn",
    more: str = "",
) -> Path:
    text = SPECIFICATION.format(directions=directions, values=values, more=more)
    (folder / "task.toml").write_text(text)
    (folder / "reference.py").write_text(REFERENCE + functions)
    return folder


def test_hard_inputs_are_drawn_where_they_are_asked_for(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, HARD, values="hard"))
    assert task.has_hard_inputs
    own = load_problem(task, tmp_path)
    drawn = [own.draw(each, Direction.FORWARD, 1, "cpu").arguments[0] for each in task.workloads]
    assert [tensor.tolist() for tensor in drawn] == [[1.0] * 4, [9.0] * 5]
    asked = [task.other_values(w, DeviceKind.CPU, Direction.FORWARD) for w in task.workloads]
    assert asked == [(Values.HARD,), (Values.DRAWN,)]


@pytest.mark.parametrize(
    ("functions", "changes", "field", "reason"),
    [
        (
            "def baseline_fn(a): ...",
            {},
            "reference.py",
            "must take the same parameters as forward_fn",
        ),
        (
            f"{BACKWARD}def baseline_fn(a, b): ...",
            {"directions": '["backward"]'},
            "reference.py",
            "is for the forward direction only",
        ),
        ("", {"more": 'baselines = ["cudnn"]'}, "reference.py", "must define library_cudnn()"),
        (
            'def library_cudnn(a):\n    "cuDNN."',
            {"more": 'baselines = ["cudnn"]'},
            "reference.py",
            "library_cudnn() must take the same parameters as forward_fn",
        ),
        ("", {"more": 'baselines = ["best"]'}, "baselines", "'best' must be 1 to 30 characters"),
        ("def verify_fn(outputs, inputs): ...", {}, "reference.py", "must take inputs and outputs"),
        (
            BACKWARD + VERIFIER,
            {"directions": BOTH},
            "reference.py",
            "only for forward-only tasks",
        ),
        (VERIFIER, {"more": "tolerance = { constant = 2.0 }"}, "tolerance", ""),
        ("", {"values": "hard"}, "workloads[1].values", "needs the function make_hard_inputs"),
        (
            HARD.replace("(N)", "(N, C)"),
            {},
            "reference.py",
            "take the same parameters as make_inputs",
        ),
    ],
)
def test_what_could_not_be_called_or_heeded_is_refused(
    tmp_path: Path, functions: str, changes: dict[str, str], field: str, reason: str
) -> None:
    with pytest.raises(DataError) as caught:
        load_task(write(tmp_path, functions, **changes))
    assert caught.value.field == field
    assert reason in caught.value.reason
