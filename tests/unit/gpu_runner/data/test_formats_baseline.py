"""A native task's own baseline: it takes what the reference takes, in the forward direction."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import load_task

SPECIFICATION = """
name = "doubled"
title = "A vector twice"
abi = "torch"
directions = ["{}"]
workloads = [{{ name = "n4", parameters = {{ N = 4 }} }}]
"""
REFERENCE = "def make_inputs(N): ...\ndef {}_fn(a, b): ...\ndef baseline_fn({}): ...\n"


def write(folder: Path, direction: str, parameters: str) -> Path:
    (folder / "task.toml").write_text(SPECIFICATION.format(direction))
    (folder / "reference.py").write_text(REFERENCE.format(direction, parameters))
    return folder


def test_a_task_may_have_a_baseline(tmp_path: Path) -> None:
    assert load_task(write(tmp_path, "forward", "a, b")).name == "doubled"


@pytest.mark.parametrize(
    ("direction", "parameters", "reason"),
    [
        ("forward", "a", "baseline_fn() must take the parameters of forward_fn()"),
        ("forward", "b, a", "baseline_fn() must take the parameters of forward_fn()"),
        ("backward", "a, b", "has baseline_fn(), which is for the forward direction only"),
    ],
)
def test_one_that_could_not_be_called(
    tmp_path: Path, direction: str, parameters: str, reason: str
) -> None:
    with pytest.raises(DataError) as caught:
        load_task(write(tmp_path, direction, parameters))
    assert (caught.value.field, caught.value.reason) == ("reference.py", reason)
