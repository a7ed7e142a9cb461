"""Python modules through the whole protocol on a CPU, and modules that never get that far."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data.formats import find_task, load_task
from gpu_runner.data.integrity import Check
from gpu_runner.data.protocol import PLANS
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles
from tests.protocol.evaluating import evaluated, needs_jail

pytestmark = needs_jail


MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width, sizes):
        super().__init__()
        self.first = nn.Linear(width, sizes[0])
        self.norm = nn.BatchNorm1d(sizes[0])

    def forward(self, x):
        return torch.relu(self.norm(self.first(x)))

def get_inputs():
    return [torch.randn(16, 8)]

def get_init_inputs():
    return [8, (6, 5)]
"""


PYTHON = Language.PYTHON


def test_a_model_of_kernelbench_gets_new_weights_at_every_call(
    config: SupervisorConfig, tmp_path: Path
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    source = MODEL.replace("class Model(", "class ModelNew(")
    result = evaluated(config, load_task(tmp_path / "model.py"), source, language=PYTHON)
    assert result.verdict is Verdict.CORRECT, result.reason
    found = {s.check for s in result.suspicions}
    assert found
    assert found <= {Check.WORK, Check.SOURCE}  # what ran, or on a busy host its words


COMPILED = """
import torch


@torch.compile(dynamic=False)
def whole(x, weights, biases):
    return torch.relu(torch.addmm(biases, x, weights.t()))


def forward(x, weights, biases):
    return whole(x, weights, biases)
"""


def test_what_hidden_sizes_compile_is_no_foreign_code(
    config: SupervisorConfig, oracles: Oracles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each size has a library of its own, and those of hidden sizes are known to be ours, too.

    One timed process shows it, and shapes that are drawn would be compiled as well.
    """
    alone = replace(PLANS[Mode.RANKED], processes=1, extra_processes=0, shapes=0)
    monkeypatch.setitem(PLANS, Mode.RANKED, alone)
    names = ("cpu_b64_i128_o128", "cpu_b33_i67_o13_integers")
    task = find_task("linear_relu")
    workloads = tuple(workload for workload in task.workloads if workload.name in names)
    task = replace(task, workloads=workloads, baselines=(), libraries=True)
    result = evaluated(config, task, COMPILED, Mode.RANKED, PYTHON, oracles=oracles)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert "inductor" in {part.part for part in result.loaded}
    assert not result.suspicions


SCRATCH = """
import tempfile
from pathlib import Path

import torch

scratch = Path(tempfile.mkdtemp()) / "notes.txt"
scratch.write_text("kept for later")


def forward(input, N, C):
    assert scratch.read_text() == "kept for later"
    return torch.softmax(input.view(N, C), -1).view(input.shape)
"""


def test_scratch_files_are_no_code(config: SupervisorConfig, oracles: Oracles) -> None:
    result = evaluated(config, "softmax", SCRATCH, language=PYTHON, oracles=oracles)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert Check.LOADED not in {suspicion.check for suspicion in result.suspicions}
    parts = {part.part for part in result.loaded}
    assert parts == {"source", "programs", "toolchain", "installed"}


INLINE = """
import tempfile

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <torch/extension.h>
#include "half.h"
torch::Tensor own(torch::Tensor x) { return x * half(); }
'''
folder = tempfile.mkdtemp()
with open(f"{folder}/half.h", "w") as file:
    file.write("inline double half() { return 0.5; }")
tag = [f"-DTAG_{hash(SOURCE) % 997}", *{"-fno-math-errno", "-funroll-loops"}]
own = load_inline(
    "own", SOURCE, functions=["own"], extra_include_paths=[folder], build_directory=folder,
    extra_cflags=tag,
)


def forward(input, N, C):
    assert own.own(torch.ones(1)).item() == 0.5
    return torch.softmax(input.view(N, C), -1).view(input.shape)
"""


DRAWN = """
import torch
from torch.utils.cpp_extension import load_inline

own = load_inline(
    "own", f"// {torch.seed()}", no_implicit_headers=True, is_python_module=False,
)


def forward(input, N, C):
    return torch.softmax(input.view(N, C), -1).view(input.shape)
"""
"""Its extension is another one in each process."""


def test_an_extension_has_headers_a_folder_and_hashes_of_its_own(
    config: SupervisorConfig, oracles: Oracles
) -> None:
    result = evaluated(config, "softmax", INLINE, language=PYTHON, oracles=oracles)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert {part.part: part.files for part in result.loaded}["extensions"] == 1
    refused = evaluated(config, "softmax", DRAWN, language=PYTHON, oracles=oracles)
    assert refused.verdict is Verdict.COMPILE_ERROR
    assert "the extension 'own' was not compiled in advance" in refused.reason


@pytest.mark.parametrize(
    ("source", "seconds", "words"),
    [
        ("import torch\ndef forward(:\n", 60.0, "kernel.py:2: error: invalid syntax"),
        ("while True:\n    pass\n", 2.0, "importing the module took longer than 2 s"),
    ],
)
def test_what_cannot_be_prepared_is_the_author_s_error(
    tmp_path: Path, source: str, seconds: float, words: str
) -> None:
    config = SupervisorConfig(cache_folder=tmp_path, build_timeout_s=seconds)
    result = evaluated(config, "softmax", source, Mode.COMPILE, PYTHON)
    assert (result.verdict, result.reason) == (Verdict.COMPILE_ERROR, words)
