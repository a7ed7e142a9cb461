"""Further workloads come from sizes that only get_inputs() reads, and are always the same."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import load_task
from gpu_runner.data.formats.kernelbench import UNLISTED
from gpu_runner.supervisor.oracle.further import CPU_LIMIT
from tests.unit.gpu_runner.supervisor.oracle.without_jail import varied

PROBLEM = """
import torch

{sizes}

class Model(torch.nn.Module):
    def __init__(self, *sizes):
        super().__init__()

    def forward(self, x{more}):
        return {body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{init}]
"""


def write(
    folder: Path, sizes: str, inputs: str, *, init: str = "", more: str = "", body: str = "x"
) -> Path:
    path = folder / "1_problem.py"
    path.write_text(PROBLEM.format(sizes=sizes, inputs=inputs, init=init, more=more, body=body))
    return path


def further(path: Path) -> dict[str, Any]:
    return {w.name: dict(w.parameters) for w in varied(path).workloads[1:]}


def test_a_large_problem_gets_workloads_for_both_kinds_of_device(tmp_path: Path) -> None:
    path = write(tmp_path, "batch, M = 16, 1024 * 4", "torch.rand(batch, M)")
    assert further(path)["odd"] == {"batch": 13, "M": 3677}
    inputs = "torch.rand(M, 4096), torch.randn((4096, N))"
    path = write(tmp_path, "M = 4096\nN = M", inputs, more=", y", body="x @ y")
    task = varied(path)
    found = {w.name: (dict(w.parameters), w.unlisted, *w.devices) for w in task.workloads}
    assert found == {
        "default": ({}, False, "cuda"),
        "half": ({"M": 2048, "N": 2048}, False, "cuda"),
        "small": ({"M": 32, "N": 32}, False, "cpu"),
        "less": ({"M": 3072, "N": 3072}, True, "cuda"),
        "odd": ({"M": 3677, "N": 3677}, True, "cuda"),
        "more": ({"M": 2560, "N": 2560}, True, "cuda"),
        "more_odd": ({"M": 2447, "N": 2447}, True, "cuda"),
        "small_less": ({"M": 24, "N": 24}, True, "cpu"),
        "small_odd": ({"M": 29, "N": 29}, True, "cpu"),
        "small_more": ({"M": 40, "N": 40}, True, "cpu"),
        "small_more_odd": ({"M": 37, "N": 37}, True, "cpu"),
    }
    assert CPU_LIMIT == 2 * 32 * 4096
    assert varied(path).digest() == task.digest()


@pytest.mark.parametrize(
    ("size", "count", "names"),
    [
        (4096, 2, ["default", "half", "small", *UNLISTED]),
        (4096, 65, ["default"]),
        (1099511627770, 9, ["default"]),
    ],
)
def test_nothing_is_added_for_sizes_that_take_long_to_find(
    tmp_path: Path, size: int, count: int, names: list[str]
) -> None:
    began = time.process_time()
    path = write(tmp_path, f"S = ({', '.join([str(size)] * count)})", "torch.rand(S)")
    assert [w.name for w in varied(path).workloads] == names
    assert time.process_time() - began < 5


def test_sizes_that_model_needs_stay(tmp_path: Path) -> None:
    path = write(tmp_path, "rows = 64\nwidth = 32", "torch.rand(rows, width)", init="width")
    changed = {"half": 32, "less": 48, "odd": 53, "more": 40, "more_odd": 37}
    assert further(path) == {name: {"rows": rows} for name, rows in changed.items()}
    text = "rows = 64\nwidth = 32\nshape = (width, 1)\nkept = torch.zeros(shape)"
    assert further(write(tmp_path, text, "torch.rand(rows, width)"))["odd"] == {"rows": 53}


def test_a_name_that_model_uses_for_itself_is_no_global(tmp_path: Path) -> None:
    path = write(tmp_path, "rows = 64", "torch.rand(rows, 3)", body="(lambda rows: rows)(x)")
    assert further(path)["odd"] == {"rows": 53}
    path = write(tmp_path, "rows = 64", "torch.rand(rows, 3)", more=", n=rows")
    assert further(path) == {}
    assert varied(path).workloads[0].devices == ("cuda", "cpu")


def test_sizes_that_are_alike_stay_alike_where_the_model_needs_that(tmp_path: Path) -> None:
    sizes, inputs = "rows = 32\nshape = (32,)", "torch.rand(rows, *shape), torch.rand(32, {})"
    for second, body, odd in [
        ("rows", "x + y", {}),  # of 32 rows, whatever happens
        ("1", "x[0] @ y", {"rows": 29}),
    ]:
        path = write(tmp_path, sizes, inputs.format(second), more=", y", body=body)
        assert further(path).get("odd", {}) == odd
    inputs = "torch.rand(rows, *shape), torch.rand(rows)"
    for body, odd in [("x + y", [29, [29]]), ("x.sum(1) + y", [29, [23]]), ("x @ y", [29, [29]])]:
        path = write(tmp_path, sizes, inputs, more=", y", body=body)
        assert list(further(path)["odd"].values()) == odd


@pytest.mark.parametrize(
    ("sizes", "inputs"),
    [
        ("n = 64", "torch.load('x')"),
        ("n = 0", "torch.rand(n)"),
        ("n = 64\nscale = n / 2", "torch.rand(n)"),
    ],
)
def test_what_has_no_size_to_change_gets_nothing(tmp_path: Path, sizes: str, inputs: str) -> None:
    assert further(write(tmp_path, sizes, inputs)) == {}


@pytest.mark.parametrize(
    ("parameters", "field", "reason"),
    [
        ({"width": 8}, "width", "Model uses it"),
        ({"rows": 0}, "rows", "must be a positive integer"),
        ({"other": 8}, "other", "must be removed"),
    ],
)
def test_a_task_as_json_has_sizes_that_get_inputs_reads(
    tmp_path: Path, parameters: dict[str, Any], field: str, reason: str
) -> None:
    sizes = "rows = 64\nwidth = 32\nshape = (rows, 3)"
    task = load_task(write(tmp_path, sizes, "torch.rand(shape)", init="width"))
    path = tmp_path / "task.json"
    path.write_text(json.dumps(codec.encode(task)))
    assert load_task(path) == task
    path.write_text(json.dumps(codec.encode(varied(tmp_path / "1_problem.py"))))
    assert load_task(path).workloads[1].parameters == {"rows": 32, "shape": [32, 3]}
    workload = replace(task.workloads[0], parameters=parameters)
    path.write_text(json.dumps(codec.encode(replace(task, workloads=(workload,)))))
    with pytest.raises(DataError, match=reason) as caught:
        load_task(path)
    assert caught.value.field == f"workloads[0].parameters.{field}"
