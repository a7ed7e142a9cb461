"""A native task's own verifier: it can be called, and nothing beside it goes unheeded."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import load_task

SPECIFICATION = """
name = "rooted"
title = "Roots"
abi = "torch"
directions = {directions}
workloads = [{{ name = "n4", parameters = {{ N = 4 }} }}]
{more}
"""
REFERENCE = """
def make_inputs(N): ...
def forward_fn(a): ...
def backward_fn(a): ...
def verify_fn({parameters}): ...
"""


def write(folder: Path, parameters: str, directions: str = '["forward"]', more: str = "") -> Path:
    (folder / "task.toml").write_text(SPECIFICATION.format(directions=directions, more=more))
    (folder / "reference.py").write_text(REFERENCE.format(parameters=parameters))
    return folder


@pytest.mark.parametrize("parameters", ["inputs, outputs", "inputs, outputs, eps"])
def test_a_task_may_have_a_verifier(tmp_path: Path, parameters: str) -> None:
    assert load_task(write(tmp_path, parameters)).has_verifier


@pytest.mark.parametrize("parameters", ["outputs, inputs", "inputs", "inputs, *outputs", "a, b"])
def test_one_that_could_not_be_called(tmp_path: Path, parameters: str) -> None:
    with pytest.raises(DataError, match="verify_fn\\(\\), which must take inputs and outputs"):
        load_task(write(tmp_path, parameters))


def test_it_judges_the_forward_direction_alone(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is only for tasks of the forward direction"):
        load_task(write(tmp_path, "inputs, outputs", '["forward", "backward"]'))


def test_a_tolerance_beside_it_would_not_be_heeded(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load_task(write(tmp_path, "inputs, outputs", more="tolerance = { constant = 2.0 }"))
    assert caught.value.field == "tolerance"
