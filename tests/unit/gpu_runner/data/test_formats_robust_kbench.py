"""robust-kbench folders are read as they are, and never imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import load_task
from gpu_runner.data.task import TaskFormat
from gpu_runner.data.verdict import Abi, Direction

FORWARD = '''
raise RuntimeError("this file must never be imported")

def forward_fn(x, weight, shift=0.0):
    """Scale and shift."""
    return x * weight + shift

class Model:
    def __init__(self, width: int, shift: float = 0.5):
        self.weight, self.shift = None, shift

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight, self.shift)

def get_inputs(rows: int = 4, width: int = 8):
    return [None]

input_names = ["x"]
'''
BACKWARD = (
    FORWARD
    + """
class AutogradFunction:
    backward_fn = None

    @staticmethod
    def forward(ctx, x, weight, shift):
        return x * weight + shift

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x, grad_weight = AutogradFunction.backward_fn(grad_output, x, weight)
        return grad_x, grad_weight, None
"""
)
CONFIG = {
    "single_input_configs": [{"rows": 2}],
    "single_init_configs": [{}],
    "single_shared_configs": [{"width": 16}],
    "multi_input_configs": [{"rows": 2}, {"rows": 32}],
    "multi_init_configs": [{"shift": 0.5}, {"shift": 2.0}],
    "multi_shared_configs": [{"width": 16}, {"width": 64}],
}


def write(folder: Path, config: Any = CONFIG, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "func_forward.py").write_text(texts.get("forward", FORWARD))
    (folder / "config_forward.json").write_text(json.dumps(config))
    return folder


def add_backward(folder: Path, config: Any = CONFIG, text: str = BACKWARD) -> Path:
    (folder / "func_backward.py").write_text(text)
    (folder / "config_backward.json").write_text(json.dumps(config))
    return folder


def refused(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        load_task(path)
    return caught.value


def test_a_folder_becomes_a_task(tmp_path: Path) -> None:
    task = load_task(write(tmp_path / "Scale_Shift"))
    assert (task.name, task.title) == ("scale_shift", "Scale Shift")
    assert (task.format, task.abi) == (TaskFormat.ROBUST_KBENCH, Abi.TORCH)
    assert task.directions == (Direction.FORWARD,)
    assert set(task.files) == {"func_forward.py", "config_forward.json"}
    assert "Scale and shift." in task.description
    assert "`forward(x, weight, shift)`" in task.description


def test_the_run_set_is_single_and_multi_without_doubles(tmp_path: Path) -> None:
    workloads = load_task(write(tmp_path / "t")).workloads
    public = [w for w in workloads if not w.hidden]
    assert [w.parameters for w in public] == [
        {"init": {"width": 16}, "inputs": {"rows": 2, "width": 16}}
    ]
    assert [w.name for w in public] == ["rows=2,width=16"]
    hidden = [w.name for w in workloads if w.hidden]
    assert len(hidden) == 2 * 2 * 2 - 1  # rows=2, width=16 with the default shift is the single one
    assert "rows=32,width=64,shift=2.0" in hidden
    assert "rows=2,width=16,shift=0.5" not in hidden


@pytest.mark.parametrize(
    ("changes", "name", "parameters"),
    [
        (  # shared values override both
            {
                "single_input_configs": [{"rows": 2, "width": 1}],
                "single_init_configs": [{"width": 3}],
            },
            "rows=2,width=16",
            {"init": {"width": 16}, "inputs": {"rows": 2, "width": 16}},
        ),
        (  # one that differs between the model and its inputs is named
            {
                "single_input_configs": [{"width": 8}],
                "single_init_configs": [{"width": 9}],
                "single_shared_configs": [{}],
            },
            "width=8,init.width=9",
            {"init": {"width": 9}, "inputs": {"width": 8}},
        ),
        (  # keys that nothing takes are left out
            {"single_init_configs": [{"kernel_size": 2}]},
            "rows=2,width=16",
            {"init": {"width": 16}, "inputs": {"rows": 2, "width": 16}},
        ),
    ],
)
def test_values_reach_the_model_and_its_inputs(
    tmp_path: Path, changes: dict[str, Any], name: str, parameters: dict[str, Any]
) -> None:
    config = CONFIG | {"multi_input_configs": []} | changes
    (workload,) = load_task(write(tmp_path / "t", config)).workloads
    assert (workload.name, workload.parameters) == (name, parameters)


def test_both_directions_with_their_own_shapes(tmp_path: Path) -> None:
    backward = CONFIG | {"single_input_configs": [{"rows": 7}], "multi_input_configs": []}
    task = load_task(add_backward(write(tmp_path / "t"), backward))
    assert task.directions == (Direction.FORWARD, Direction.BACKWARD)
    of = {w.name: w.directions for w in task.workloads if not w.hidden}
    assert of == {"rows=2,width=16": (Direction.FORWARD,), "rows=7,width=16": (Direction.BACKWARD,)}
    assert "`backward(grad_output, x, weight)`" in task.description
    same = load_task(add_backward(write(tmp_path / "same")))
    assert {w.directions for w in same.workloads} == {(Direction.FORWARD, Direction.BACKWARD)}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("def forward_fn", "def fn", "must define the function forward_fn()"),
        ("class Model", "class Module", "must define the class Model"),
        ("fn=forward_fn", "function=None", "must take the function that it calls as `fn`"),
        ("def forward_fn(", "def forward_fn((", "is not valid Python"),
        ("AutogradFunction.backward_fn(", "other(", "does not call backward_fn()"),
    ],
)
def test_a_function_file_that_cannot_serve(tmp_path: Path, old: str, new: str, reason: str) -> None:
    folder = write(tmp_path / "t", forward=FORWARD.replace(old, new, 1))
    field = "func_forward.py"
    if old in BACKWARD.removeprefix(FORWARD):
        folder = add_backward(write(tmp_path / "t"), text=BACKWARD.replace(old, new, 1))
        field = "func_backward.py"
    error = refused(folder)
    assert error.field == field
    assert reason in error.reason


@pytest.mark.parametrize(
    ("config", "field", "reason"),
    [
        ([], "config_forward.json", "must be an object"),
        ({"single_input_configs": [3]}, "config_forward.json: single_input_configs", "list of"),
        (
            {"single_input_configs": [{"rows": 2}]},
            "config_forward.json: single_init_configs.width",
            "is missing",
        ),
        (
            CONFIG | {"multi_input_configs": [{"rows": n} for n in range(200)]},
            "config_forward.json",
            "has more than 256 combinations",
        ),
        ({"single_input_configs": []}, "workloads", "at least one workload"),
    ],
)
def test_a_mistake_in_a_configuration(tmp_path: Path, config: Any, field: str, reason: str) -> None:
    error = refused(write(tmp_path / "t", config))
    assert error.field == field
    assert reason in error.reason
