"""A further workload never breaks its model, however the file writes its sizes."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from gpu_runner.data.task import Task, Workload
from gpu_runner.supervisor.oracle.further import CPU_LIMIT
from tests.unit.gpu_runner.supervisor.oracle.without_jail import varied

MODEL = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self{parameters}):
        super().__init__()
        {init}

    def forward(self, x, *more):
        return {forward}

batch = 64
dim = 128
other = 128
side = 32

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{given}]
"""
ROWS, IMAGE = "torch.randn(batch, dim)", "torch.randn(batch, dim, side, side)"
STEPS = "torch.randn(9, batch, dim)"
FIXED = {
    "batch norm": ("self.a = nn.BatchNorm1d(n)", "self.a(x)", ROWS, "128"),
    "batch norm of pictures": ("self.a = nn.BatchNorm2d(n)", "self.a(x)", IMAGE, "128"),
    "convolution": ("self.a = nn.Conv2d(n, 4, 3)", "self.a(x)", IMAGE, "128"),
    "gru": ("self.a = nn.GRU(n, 16)", "self.a(x)[0]", STEPS, "128"),
    "parameter": ("self.a = nn.Parameter(torch.ones(128))", "x * self.a", ROWS, ""),
    "parameter of the batch": ("self.a = nn.Parameter(torch.ones(64, 1))", "x * self.a", ROWS, ""),
    "rows alone": ("self.a = nn.Linear(n, 4)", "self.a(x)", "torch.randn(dim)", "128"),
    "a view": ("self.a = n", "x.view(64, -1)", ROWS, "1"),
    "global of another name": ("self.a = nn.Linear(n, 4)", "self.a(x)", ROWS, "other"),
    "inputs that must be alike": ("pass", "x + more[0]", f"{ROWS}, torch.randn(batch, other)", ""),
    "a product": ("pass", "x @ more[0]", f"{ROWS}, torch.randn(other, 16)", ""),
    "unknown": ("pass", "torch.linalg.inv(x)", "torch.randn(batch, 64, dim)", ""),
    "one in the file": ("pass", "x.view(int(len(__file__) > 0) * 64, 128)", ROWS, ""),
}
"""Each fixes a size: what __init__ does with `n`, forward(), inputs, get_init_inputs()."""


def text_of(case: tuple[str, str, str, str]) -> str:
    init, forward, inputs, given = case
    parameters = ", n" if given else ""
    return MODEL.format(
        parameters=parameters, init=init, forward=forward, inputs=inputs, given=given
    )


def read(folder: Path, text: str) -> Task:
    path = folder / "1_problem.py"
    path.write_text(text)
    return varied(path)


def run(text: str, workload: Workload) -> tuple[int, torch.Tensor]:
    """Elements of the inputs of a workload, as the engine makes them, and what Model gives."""
    module = ModuleType("problem")
    module.__file__ = "problem.py"
    sys.modules["problem"] = module  # where dataclasses look it up
    exec(compile(text, "problem.py", "exec"), module.__dict__)
    model = module.Model(*module.get_init_inputs())
    own = {name: getattr(module, name) for name in workload.parameters}
    sizes = {n: tuple(v) if isinstance(v, list) else v for n, v in workload.parameters.items()}
    vars(module).update(sizes)
    inputs = module.get_inputs()
    vars(module).update(own)
    with torch.no_grad():
        return sum(value.numel() for value in inputs), model(*inputs)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", FIXED)
def test_no_further_workload_breaks_a_size_that_the_model_fixes(tmp_path: Path, name: str) -> None:
    text = text_of(FIXED[name])
    for workload in read(tmp_path, text).workloads:
        if name == "unknown" and not workload.parameters:
            continue  # 64 x 128 has no inverse: the file itself is wrong
        count, _ = run(text, workload)
        limit = 2 * CPU_LIMIT if workload.unlisted else CPU_LIMIT
        assert count <= limit or workload.devices == ("cuda",)


FORMS = {
    "a dictionary": (
        "CFG = {{'rows': {rows}, 'cols': {cols}}}",
        "torch.rand(CFG['rows'], CFG['cols'])",
    ),
    "a torch.Size": ("S = torch.Size([{rows}, {cols}])", "torch.rand(S)"),
    "a class": ("class C:\n    rows = {rows}\n    cols = {cols}", "torch.rand(C.rows, C.cols)"),
    "a helper": ("def make(n, m=1):\n    return torch.rand(n, m)", "make({rows}, m={cols})"),
    "a loop": ("", "*[torch.rand({rows}, 1) for _ in range({cols})]"),
}
FILE = """
import torch
import torch.nn as nn

{before}

class Model(nn.Module):
    def forward(self, x, *more):
        return torch.relu(x)

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def written(form: tuple[str, str], rows: int, cols: int) -> str:
    before, inputs = (part.format(rows=rows, cols=cols) for part in form)
    return FILE.format(before=before, inputs=inputs)


@pytest.mark.parametrize("form", FORMS)
def test_large_inputs_are_for_cuda_alone_however_they_are_written(
    tmp_path: Path, form: str
) -> None:
    task = read(tmp_path, written(FORMS[form], 512, 513))
    assert task.workloads[0].devices == ("cuda",)
    for workload in task.workloads:
        assert "cpu" not in workload.devices or workload.parameters
    small = written(FORMS[form], 512, 512)
    own = read(tmp_path, small).workloads[0]
    assert own.devices == ("cuda", "cpu")
    assert run(small, own)[0] == CPU_LIMIT


@pytest.mark.parametrize(
    ("before", "inputs", "devices"),
    [
        ("import os\nN = int(os.environ.get('N', 4096))", "torch.rand(N, N)", ("cuda",)),
        ("import numpy as np", "torch.from_numpy(np.ones((1024, 1024)))", ("cuda",)),
        ("def make():\n    yield torch.rand(4096, 4096)", "*make()", ("cuda",)),
        ("", "torch.rand(4096, 4096).numpy()", ("cuda", "cpu")),
    ],
)
def test_what_cannot_be_run_without_elements_stays_as_it_is(
    tmp_path: Path, before: str, inputs: str, devices: tuple[str, ...]
) -> None:
    workloads = read(tmp_path, FILE.format(before=before, inputs=inputs)).workloads
    assert workloads[0].devices == devices
