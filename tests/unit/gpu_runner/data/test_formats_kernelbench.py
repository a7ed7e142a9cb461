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
        ("def get_inputs", "def get_input_groups", "get_inputs(), not groups of inputs"),
        ("def get_init_inputs", "def init", "must define the function get_init_inputs()"),
        ("return [8, 2]", "return [8, 2", "is not valid Python"),
        ("return [8, 2]", "return " + "(" * 50_000 + ")" * 50_000, "is not valid Python"),
        ("import torch\n", "import torch, transformers\n", "imports transformers, which no"),
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
        ("rows, 2)]", "rows, 2, dtype=torch.complex64)]", "get_inputs() gives complex numbers"),
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
    ("old", "new"),
    [
        ("torch.rand(rows, 2)]", "torch.view_as_real(torch.polar(x, x))]"),
        ("return torch.relu(", "return torch.fft.irfft(torch.fft.rfft(x)) + (x * mask"),
        ("return torch.relu(", "return torch.fft.fft(x).real + (x * mask"),
    ],
)
def test_complex_numbers_on_the_way_are_nobodys_business(
    tmp_path: Path, old: str, new: str
) -> None:
    path = tmp_path / "p.py"
    path.write_text(PROBLEM.replace(old, new))
    assert load_task(path).name == "p"


@pytest.mark.parametrize("inherits", [False, True])
def test_the_description_says_what_a_kernel_receives(tmp_path: Path, inherits: bool) -> None:
    path = tmp_path / "p.py"
    own = PROBLEM.replace("class Model(", "class Net(") + "class Model(Net):\n    pass\n"
    path.write_text(own if inherits else PROBLEM)
    text = load_task(path).description
    assert ("Project, then keep what is positive." in text) is not inherits
    assert "`get_inputs()`: `x`, `mask`" in text
    assert "`project` (Linear), `norm` (BatchNorm1d)" in text
    assert "`width`, `heads`, `scale`" in text


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
    assert any("names CUDA" in words for words in reading.adaptations) is (len(devices) == 1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    return [torch", "    torch.manual_seed(0)\n    return [torch", "seed"),
        ("torch.rand(rows, 2)", "torch.rand(rows, 2).half()", "float32"),
        ("torch.relu(self.norm(self.project(x)) * mask)", '{"out": x}', "values are the outputs"),
    ],
)
def test_what_is_done_in_another_way_is_said(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = tmp_path / "p.py"
    path.write_text(PROBLEM)
    before = read_task(path).adaptations
    path.write_text(PROBLEM.replace(old, new))
    (added,) = set(read_task(path).adaptations) - set(before)
    assert words in added
