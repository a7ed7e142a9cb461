"""A further workload never breaks its model, however the file writes its sizes."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

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
    "layer norm of a picture": ("self.a = nn.LayerNorm([n, 32, 32])", "self.a(x)", IMAGE, "128"),
    "convolution": ("self.a = nn.Conv2d(n, 4, 3)", "self.a(x)", IMAGE, "128"),
    "embedding": (
        "self.a = nn.Embedding(n, 8)",
        "self.a(x)",
        "torch.randint(0, dim, (batch, 9))",
        "128",
    ),
    "gru": ("self.a = nn.GRU(n, 16)", "self.a(x)[0]", STEPS, "128"),
    "lstm": (
        "self.a = nn.LSTM(n, 16, batch_first=True)",
        "self.a(x)[0]",
        "torch.randn(batch, 9, dim)",
        "128",
    ),
    "a first state": (
        "self.a = nn.GRU(n, 16); self.h = torch.zeros(1, 64, 16)",
        "self.a(x, self.h)[0]",
        STEPS,
        "128",
    ),
    "bilinear": ("self.a = nn.Bilinear(n, n, 4)", "self.a(x, x)", ROWS, "128"),
    "parameter": ("self.a = nn.Parameter(torch.ones(128))", "x * self.a", ROWS, ""),
    "parameter of the batch": ("self.a = nn.Parameter(torch.ones(64, 1))", "x * self.a", ROWS, ""),
    "rows alone": ("self.a = nn.Linear(n, 4)", "self.a(x)", "torch.randn(dim)", "128"),
    "a view": ("self.a = n", "x.view(64, -1)", ROWS, "1"),
    "a view of all": (
        "self.a = nn.Linear(128 * 32 * 32, 4)",
        "self.a(x.view(-1, 131072))",
        IMAGE,
        "",
    ),
    "heads": ("self.a = nn.MultiheadAttention(n, 8)", "self.a(x, x, x)[0]", STEPS, "128"),
    "global of another name": ("self.a = nn.Linear(n, 4)", "self.a(x)", ROWS, "other"),
    "inputs that must be alike": ("pass", "x + more[0]", f"{ROWS}, torch.randn(batch, other)", ""),
    "a product": ("pass", "x @ more[0]", f"{ROWS}, torch.randn(other, 16)", ""),
    "classes": (
        "pass",
        "F.cross_entropy(x, more[0])",
        f"{ROWS}, torch.randint(0, 128, (batch,))",
        "",
    ),
    "a pool": ("self.a = nn.AvgPool2d(20)", "self.a(x)", IMAGE, ""),
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


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("batch norm", {"batch"}),
        ("batch norm of pictures", {"batch", "side"}),
        ("convolution", {"batch", "side"}),
        ("parameter", {"batch"}),
        ("parameter of the batch", {"dim"}),
        ("rows alone", set()),
        ("a view", {"batch", "dim"}),  # 61 x 128 elements make 64 rows, too
        ("global of another name", {"batch"}),
        ("inputs that must be alike", {"batch", "dim", "other"}),
        ("a product", {"batch", "dim", "other"}),
        ("unknown", set()),
        ("bilinear", {"batch"}),
        ("gru", {"batch"}),
        ("lstm", {"batch"}),
    ],
)
def test_what_is_not_fixed_is_varied(tmp_path: Path, name: str, changed: set[str]) -> None:
    workloads = read(tmp_path, text_of(FIXED[name])).workloads
    assert {size for workload in workloads for size in workload.parameters} == changed


FORMS = {
    "a keyword": ("", "torch.rand(size=({rows}, {cols}))"),
    "a dictionary": (
        "CFG = {{'rows': {rows}, 'cols': {cols}}}",
        "torch.rand(CFG['rows'], CFG['cols'])",
    ),
    "a torch.Size": ("S = torch.Size([{rows}, {cols}])", "torch.rand(S)"),
    "a class": ("class C:\n    rows = {rows}\n    cols = {cols}", "torch.rand(C.rows, C.cols)"),
    "an object": (
        "class C:\n    def __init__(self, n):\n        self.n = n\nc = C({rows})",
        "torch.rand(c.n, {cols})",
    ),
    "a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass C:\n    rows: int = {rows}\n"
        "    cols: int = 1\nc = C(cols={cols})",
        "torch.rand(c.rows, c.cols)",
    ),
    "a helper": ("def make(n, m=1):\n    return torch.rand(n, m)", "make({rows}, m={cols})"),
    "a loop": ("", "*[torch.rand({rows}, 1) for _ in range({cols})]"),
    "a product of two": ("", "torch.rand({rows}, 2) @ torch.rand(2, {cols})"),
    "drawn from whole numbers": ("", "torch.randint(0, 9, size=({rows}, {cols})).float()"),
    "a parameter": ("", "nn.Parameter(torch.randn({rows}, {cols}))"),
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
        ("import json\nN = json.loads('[4096]')", "torch.rand(N[0], N[0])", ("cuda",)),
        ("", "torch.rand(4096, 4096).numpy()", ("cuda", "cpu")),
        ("", "open('sizes').read()", ("cuda", "cpu")),
    ],
)
def test_what_cannot_be_run_without_elements_stays_as_it_is(
    tmp_path: Path, before: str, inputs: str, devices: tuple[str, ...]
) -> None:
    workloads = read(tmp_path, FILE.format(before=before, inputs=inputs)).workloads
    assert workloads[0].devices == devices


def test_a_size_that_cannot_become_small_is_for_cuda_alone(tmp_path: Path) -> None:
    text = MODEL.format(
        parameters="", init="self.a = nn.Linear(1 << 20, 4)", forward="self.a(x)",
        inputs="torch.randn(batch, 1 << 20)", given="",
    )  # fmt: skip
    found: dict[str, Any] = {w.name: w.devices for w in read(tmp_path, text).workloads}
    assert found == dict.fromkeys(("default", "half", "less", "odd", "more", "more_odd"), ("cuda",))


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        ("self.n = [int(i) for i in torch.linspace(0, 3, 4)]", "x.sum() * sum(self.n)"),
        ("self.n = torch.tensor([4, 4])", "x[:, :, : self.n.sum().item()]"),
        ("self.a = nn.Linear(32, 4).cuda()", "self.a(x.cuda().float()).cpu()"),
        (
            "self.a = torch.ones(1, device='cuda')",
            "x.to('cuda', torch.float64) * self.a.to('cuda')",
        ),
        ("self.a = nn.TransformerEncoderLayer(32, 4)", "self.a(x[:, 0])"),
        ("self.a = nn.Upsample(scale_factor=2, mode='bilinear')", "self.a(x)"),
        ("pass", "torch.einsum('bdij->bd', x)"),
        ("pass", "F.scaled_dot_product_attention(x, x, x, is_causal=True)"),
        ("pass", "torch.linalg.norm(x, dim=(2, 3)).softmax(1).cumsum(1)"),
        ("pass", "torch.stack([x[i].flip(0) for i in range(x.shape[0])])"),
        ("import numpy as np; self.n = torch.from_numpy(np.ones(32))", "x * self.n"),
    ],
)
def test_all_of_torch_is_known(tmp_path: Path, init: str, forward: str) -> None:
    text = MODEL.format(
        parameters="", init=init, forward=forward, inputs="torch.randn(batch, 4, 32, 32)", given=""
    )
    found = {w.name: w.parameters for w in read(tmp_path, text).workloads}
    assert (found["half"], found["odd"]) == ({"batch": 32}, {"batch": 53})
