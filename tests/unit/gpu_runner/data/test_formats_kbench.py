"""Native task folders and encoded tasks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.codec import DataError, encode
from gpu_runner.data.formats import load_task
from gpu_runner.data.formats.text import FILES_LIMIT, TASK_LIMIT_BYTES
from gpu_runner.data.task import ShippedKernel, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language

SPECIFICATION = '''
name = "row_sum"
title = "Row sums"
scenario = "algebra"
description = """Sums of *rows*."""
abi = "c"
signature = "void row_sum(float* out, const float* input, int N, int C)"
[tolerance]
reduction = "C"
[work.forward]
flops = "N * C"
bytes = "4 * N * C + 4 * N"
[[workloads]]
name = "small"
parameters = { N = 4, C = 16, D = 2 }
[[workloads]]
name = "large"
hidden = true
devices = ["cuda"]
parameters = { N = 4096, C = 4096, D = 2 }
[[kernels]]
path = "kernels/naive.cpp"
agent = "kbench-naive"
language = "cpp"
'''
REFERENCE = """
import torch

def make_inputs(N, C, D):
    return {"input": torch.randn(N, C)}

def forward_fn(input):
    return input.sum(-1)
"""


KERNELBENCH = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

batch_size = 16
dim = 64

def get_inputs():
    return [torch.rand(batch_size, dim)]

def get_init_inputs():
    return []
"""


def write(folder: Path, specification: str = SPECIFICATION, **files: str) -> Path:
    (folder / "kernels").mkdir(parents=True, exist_ok=True)
    (folder / "task.toml").write_text(specification)
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "kernels" / "naive.cpp").write_text("// a kernel")
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def small(**parameters: Any) -> dict[str, Any]:
    return {"name": "a", "parameters": {"N": 1, "C": 1, "D": 1} | parameters}


def refused(path: Path, format_: str = "auto") -> DataError:
    with pytest.raises(DataError) as caught:
        load_task(path, format_)
    return caught.value


def test_a_folder_or_its_specification_becomes_a_task(tmp_path: Path) -> None:
    task = load_task(write(tmp_path))
    assert load_task(tmp_path / "task.toml") == task
    assert (task.name, task.title, task.scenario) == ("row_sum", "Row sums", "algebra")
    assert (task.format, task.abi) == (TaskFormat.KBENCH, Abi.C)
    assert task.directions == (Direction.FORWARD,)
    assert task.workloads == (
        Workload(name="small", parameters={"N": 4, "C": 16, "D": 2}),
        Workload(
            name="large",
            parameters={"N": 4096, "C": 4096, "D": 2},
            hidden=True,
            devices=(DeviceKind.CUDA,),
        ),
    )
    assert set(task.files) == {"reference.py", "kernels/naive.cpp"}
    assert task.kernels == (
        ShippedKernel(path="kernels/naive.cpp", agent="kbench-naive", language=Language.CPP),
    )


def test_loading_never_runs_the_tasks_code(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    folder = write(tmp_path / "task")
    reference = folder / "reference.py"
    reference.write_text(REFERENCE + f"\nopen({str(trace)!r}, 'w').close()\n")
    load_task(folder)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("old", "new", "field", "reason"),
    [
        ('name = "row_sum"', "", "name", "is missing"),
        ('name = "row_sum"', 'name = "Row Sum"', "name", "must be 1 to 80"),
        ('title = "Row sums"', "title = 3", "title", "must be str, not int"),
        ('abi = "c"', 'abi = "c"\nbaselines = ["fast"]', "reference.py", "define library_fast"),
        ('abi = "c"', 'abi = "c"\ncolour = 1', "colour", "is not a known field"),
        ('abi = "c"', 'abi = "c"\nfiles = {}', "files", "does not belong in task.toml"),
        ('abi = "c"', 'abi = "c"\ndirections = []', "directions", "can only be forward"),
        ("[work.forward]", "[work.backward]", "work.backward", "is for a direction"),
        ("void row_sum", "int row_sum", "signature", "is not `void NAME(...)`"),
        (", D = 2", "", "workloads[0].parameters.D", "is missing: make_inputs() needs it"),
        ("D = 2", "D = 2, E = 1", "workloads[0].parameters.E", "is not a parameter of"),
        ("D = 2", "D = 1979-05-27", "workloads[0].parameters.D", "must be a number"),
        ("C = 16", "C = nan", "workloads[0].parameters", "not a finite number"),
        ('name = "large"', 'name = "small"', "workloads[1].name", "is also the name"),
        ('["cuda"]', "[]", "workloads[1].devices", "is empty"),
        ('name = "small"', 'name = "small"\nhidden = true', "workloads", "has no listed workload"),
        ("naive.cpp", "good.cpp", "kernels[0].path", "is not one of the task's files"),
        ('language = "cpp"', 'language = "cuda"', "kernels[0].path", "must end in .cu"),
        ('"kbench-naive"', f'"{"x" * 101}"', "kernels[0].agent", "must be 1 to 100 characters"),
        (
            'age = "cpp"',
            'age = "cpp"\ndirection = "backward"',
            "kernels[0].direction",
            "is not one",
        ),
        ("[tolerance]", "[tolerance", "task.toml", "is not valid TOML"),
        ("[tolerance]", "[tolerance]\nconstant = -1.0", "tolerance.constant", ""),
        ("[tolerance]", "[tolerance]\ngrowth = nan", "tolerance.growth", ""),
        ("N = 4096", "N = 4099.5", "workloads[1].parameters.N", ""),
        ("N = 4096", "N = 2147483648", "workloads[1].parameters.N", ""),
    ],
)
def test_a_mistake_names_its_field(
    tmp_path: Path, old: str, new: str, field: str, reason: str
) -> None:
    assert old in SPECIFICATION
    error = refused(write(tmp_path, SPECIFICATION.replace(old, new, 1)))
    assert error.field == field
    assert reason in error.reason


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("def make_inputs(N, C): pass", "must define the function forward_fn()"),
        ("def forward_fn(input): pass", "must define the function make_inputs()"),
        ("def make_inputs(N, C:", "is not valid Python (line 1)"),
        (
            f"import math\nimport scipy\nfrom requests import get\n{REFERENCE}",
            "imports scipy, requests, which runners",
        ),
    ],
)
def test_a_reference_that_cannot_serve(tmp_path: Path, reference: str, reason: str) -> None:
    error = refused(write(tmp_path, reference__py=reference))
    assert error.field == "reference.py"
    assert reason in error.reason


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "data.bin").write_bytes(b"ab\xff")
    error = refused(folder)
    assert (error.field, error.reason) == ("data.bin", "is not UTF-8 text (byte 2)")
    (folder / "data.bin").write_bytes(b"ab\0")
    assert "NUL" in refused(folder).reason


def test_a_link_inside_the_folder_is_a_file_and_one_out_of_it_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    folder = write(tmp_path / "task")
    (folder / "link.txt").symlink_to(secret)
    error = refused(folder)
    assert error.field == "link.txt"
    assert "symbolic link" in error.reason
    (folder / "link.txt").unlink()
    (folder / "more").symlink_to(tmp_path)
    assert refused(folder).field == "more"
    (folder / "more").unlink()
    (folder / "same.cpp").symlink_to(folder / "kernels" / "naive.cpp")
    assert load_task(folder).files["same.cpp"] == "// a kernel"
    os.mkfifo(folder / "pipe")  # does not block
    assert refused(folder).reason == "is not a regular file"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"files": {"../x.py": ""}}, "files.../x.py"),
        ({"files": {"/etc/x.py": ""}}, "files./etc/x.py"),
        ({"files": {"reference.py": "x" * (TASK_LIMIT_BYTES + 1)}}, "files"),
        ({"files": {"reference.py": ""}, "kernels": []}, "reference.py"),
        ({"schema_version": 99}, "schema_version"),
        ({"workloads": [small(x=[1])]}, "workloads[0].parameters.x"),
        ({"workloads": [small(D="d" * 5000)]}, "workloads[0].parameters"),
    ],
)
def test_a_mistake_in_json_names_its_field(
    tmp_path: Path, change: dict[str, Any], field: str
) -> None:
    task = load_task(write(tmp_path / "task"))
    path = tmp_path / "task.json"
    path.write_text(json.dumps(encode(task)))
    assert load_task(path) == task
    path.write_text(json.dumps(encode(task) | change))
    assert refused(path).field == field


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_json_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "task.json").write_text(text)
    assert refused(tmp_path / "task.json").field == "task.json"


def test_paths_that_are_no_tasks(tmp_path: Path) -> None:
    assert refused(tmp_path / "missing").field == "path"
    assert "no task.toml, func_forward.py" in refused(tmp_path).reason
    (tmp_path / "a.txt").write_text("")
    assert refused(tmp_path / "a.txt").field == "path"
    assert refused(tmp_path, "fortran").field == "format"
    assert refused(tmp_path, "kbench").field == "task.toml"
    (write(tmp_path / "task") / "reference.py").unlink()
    assert refused(tmp_path / "task").field == "reference.py"


def test_files_have_limits(tmp_path: Path) -> None:
    folder = write(tmp_path)
    for index in range(3):
        (folder / f"{index}.txt").write_text("x" * (TASK_LIMIT_BYTES // 3))
    assert "larger than" in refused(folder).reason
    for index in range(FILES_LIMIT):
        (folder / f"{index}.txt").write_text("")
    assert refused(folder).field == "files"
