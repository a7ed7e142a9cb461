"""Python modules through the whole protocol on a CPU, and modules that never get that far."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import find_task, load_task
from gpu_runner.data.integrity import Check
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

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
NUMBA = """
import numpy as np
import torch
from numba import njit, prange

@njit(parallel=True, cache=True, fastmath=True)
def rows(out, x):
    for r in prange(x.shape[0]):
        out[r] = np.exp(x[r] - x[r].max())
        out[r] /= out[r].sum()

def forward(input, N, C):
    out = torch.empty_like(input)
    rows(out.numpy(), input.numpy())
    return out
"""


def evaluated(
    task: Task, source: str, folder: Path, mode: Mode = Mode.TEST, seconds: float = 120.0
) -> EvaluationResult:
    request = EvaluationRequest(
        evaluation_id="module",
        task=task,
        solution=Solution(source=source, language=Language.PYTHON),
        mode=mode,
        device="cpu",
    )
    return evaluate(request, SupervisorConfig(cache_folder=folder, build_timeout_s=seconds))


def test_a_model_of_kernelbench_gets_new_weights_at_every_call(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    source = MODEL.replace("class Model(", "class ModelNew(")
    result = evaluated(load_task(tmp_path / "model.py"), source, tmp_path)
    assert result.verdict is Verdict.CORRECT, result.reason
    found = {s.check for s in result.suspicions}
    assert found
    assert found <= {Check.WORK, Check.SOURCE}  # what ran, or on a busy host its words


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
def test_numba_compiles_before_it_is_measured(tmp_path: Path) -> None:
    result = evaluated(find_task("softmax"), NUMBA, tmp_path)
    assert (result.verdict, result.suspicions) == (Verdict.CORRECT, ()), result.reason


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


def test_scratch_files_are_no_code(tmp_path: Path) -> None:
    result = evaluated(find_task("softmax"), SCRATCH, tmp_path)
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


def test_an_extension_has_headers_a_folder_and_hashes_of_its_own(tmp_path: Path) -> None:
    result = evaluated(find_task("softmax"), INLINE, tmp_path)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert {part.part: part.files for part in result.loaded}["extensions"] == 1
    drawn = '// " + str(torch.seed()))'
    random = INLINE.replace('return 0.5; }")', f"return 0.5; }} {drawn}")
    refused = evaluated(find_task("softmax"), random, tmp_path)
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
    result = evaluated(find_task("softmax"), source, tmp_path, Mode.COMPILE, seconds)
    assert (result.verdict, result.reason) == (Verdict.COMPILE_ERROR, words)
