"""KernelBench problem files are read as they are, and never imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import load_task
from gpu_runner.data.formats.load import read_task
from gpu_runner.data.task import TaskFormat
from gpu_runner.data.verdict import Abi, DeviceKind, Direction

PROBLEM = '''
import torch
from torch import nn

raise RuntimeError("this file must never be imported")

class Model(nn.Module):
    """Project, then keep what is positive."""

    def __init__(self, width, heads, scale=1.0):
        super().__init__()
        self.project = nn.Linear(width, heads)
        self.norm = nn.BatchNorm1d(heads)

    def forward(self, x, mask):
        return torch.relu(self.norm(self.project(x)) * mask)

rows = 4

def get_inputs():
    return [torch.rand(rows, 8), torch.rand(rows, 2)]

def get_init_inputs():
    return [8, 2]
'''


def test_a_file_becomes_a_task(tmp_path: Path) -> None:
    path = tmp_path / "level2" / "7_Project_Keep.py"
    path.parent.mkdir()
    path.write_text(PROBLEM)
    task = load_task(path)
    assert (task.name, task.title) == ("level2-7_project_keep", "Project Keep")
    assert (task.format, task.abi) == (TaskFormat.KERNELBENCH, Abi.TORCH)
    assert task.directions == (Direction.FORWARD,)
    assert [w.name for w in task.workloads] == ["default"]
    assert all(w.directions == (Direction.FORWARD,) for w in task.workloads)
    assert task.files == {"7_Project_Keep.py": PROBLEM}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("class Model(", "class Net(", "must define the class Model with a method forward()"),
        ("def forward", "def run", "must define the class Model with a method forward()"),
        ("def get_inputs", "def inputs", "must define the function get_inputs()"),
        ("def get_inputs", "def get_input_groups", "get_inputs(), not get_input_groups()"),
        ("def get_init_inputs", "def init", "must define the function get_init_inputs()"),
        ("return [8, 2]", "return [8, 2", "is not valid Python"),
        ("return [8, 2]", "return " + "(" * 50_000 + ")" * 50_000, "is not valid Python"),
        ("import torch\n", "import torch, transformers\n", "imports transformers, which runners"),
    ],
)
def test_a_file_that_cannot_serve(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = tmp_path / "p.py"
    path.write_text(PROBLEM.replace(old, new))
    with pytest.raises(DataError) as caught:
        load_task(path)
    assert caught.value.field == "p.py"
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("rows, 2)]", "rows, 2, dtype=torch.complex64)]", "get_inputs() returns complex numbers"),
        ("return torch.relu(", "y = torch.fft.rfft(x); return y, (", "returns complex numbers"),
    ],
)
def test_what_kernels_cannot_have_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    path = tmp_path / "p.py"
    assert old in PROBLEM
    path.write_text(PROBLEM.replace(old, new))
    with pytest.raises(DataError, match=r"line \d+\)") as caught:
        load_task(path)
    assert reason in caught.value.reason
    assert f"(line {caught.value.line})" in caught.value.reason


@pytest.mark.parametrize(
    ("new", "devices"),
    [
        ("torch.rand(rows, 8).cuda()", {DeviceKind.CUDA}),
        ("torch.rand(rows, 8, device='cuda:0')", {DeviceKind.CUDA}),
        ("torch.rand(rows, 8, device=device).to(device)", {DeviceKind.CUDA, DeviceKind.CPU}),
    ],
)
def test_what_asks_for_cuda_by_name_is_for_cuda(
    tmp_path: Path, new: str, devices: set[DeviceKind]
) -> None:
    path = tmp_path / "p.py"
    device = "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n\nrows = 4"
    text = PROBLEM.replace("rows = 4", device if "device)" in new else "rows = 4")
    path.write_text(text.replace("torch.rand(rows, 8)", new))
    reading = read_task(path)
    assert {device for w in reading.task.workloads for device in w.devices} == devices
    assert any("refers to CUDA" in words for words in reading.adaptations) is (len(devices) == 1)
