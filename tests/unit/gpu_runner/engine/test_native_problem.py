"""What a native reference gets by name, and its baseline, which is timed in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.engine.formats.native_problem import NativeProblem, inner_eps
from gpu_runner.engine.problem.arguments import c_arguments
from gpu_runner.engine.problem.problem import ProblemError, load_problem
from gpu_runner.engine.soundness.filters import facts_of
from tests.unit.gpu_runner.engine.stub import make_task

REFERENCE = """
import torch

def make_inputs(N):
    return {"in": torch.rand(N) + 1, "lambda": FACTOR}

def forward_fn(in_, lambda_):
    return in_ * lambda_

def forward_scale(in_, inner_eps):
    return in_ * inner_eps
"""
ROWS = """
import torch

def make_inputs(N):
    return {"a": torch.rand(N)}

def forward_fn(a):
    return a + 1

"""
SIGNATURE = "void scale_{0}(const {0}* in, {0}* out, float lambda, int N)"


@pytest.mark.parametrize("factor", [0.25, 2])  # TOML's 2 is the signature's 2.0
@pytest.mark.parametrize(
    ("dtype", "ctype", "ratio"),
    [("float32", "float", 1.0), ("bfloat16", "__nv_bfloat16", 2.0**-16)],
)
def test_a_reference_reads_keywords_and_the_inner_epsilon(
    dtype: str, ctype: str, ratio: float, factor: float, tmp_path: Path
) -> None:
    reference = REFERENCE.replace("FACTOR", str(factor))
    signature = SIGNATURE.format(ctype)
    task = make_task(reference, {"N": 5}, Abi.C, signature=signature, dtype=dtype)
    (tmp_path / "reference.py").write_text(reference)
    problem = load_problem(task, tmp_path)
    key = (task.workloads[0], Direction.FORWARD, 7, "cpu")
    drawn = problem.draw(*key)
    source, given = drawn.arguments
    assert drawn.names == ("in", "lambda")
    assert source.dtype is getattr(torch, dtype)
    values = {p.name: value for p, value in c_arguments(task, task.workloads[0], drawn)}
    assert torch.equal(values["in"], source)
    assert (values["lambda"], values["N"]) == (given, 5) == (factor, 5)
    assert isinstance(given, float)
    (expected,) = problem.expected(*key)
    assert torch.equal(expected, source.double() * factor)
    scales = problem.scale(*key, (expected,))
    assert scales is not None
    assert torch.equal(scales[0], source.double() * ratio)


def test_the_inner_epsilon_is_that_of_float32_in_narrow_dtypes_alone() -> None:
    assert inner_eps("float16") == 2.0**-13
    assert inner_eps("float64") == inner_eps("int32") == 1.0


def test_a_baseline_is_timed_and_never_judged_by(tmp_path: Path) -> None:
    reference = ROWS + "def baseline_fn(a):\n    return a - 1\n"
    problem = native(reference, tmp_path)
    a = torch.ones(3)
    assert torch.equal(problem.baseline(Direction.FORWARD)(a), a - 1)
    assert torch.equal(problem.function(Direction.FORWARD)(a), a + 1)
    workload = problem.task.workloads[0]
    drawn = problem.draw(workload, Direction.FORWARD, 1, "cpu").arguments[0]
    (expected,) = problem.expected(workload, Direction.FORWARD, 1, "cpu")
    assert torch.equal(expected, drawn.double() + 1)


def test_without_a_baseline_the_reference_is_timed(tmp_path: Path) -> None:
    problem = native(ROWS, tmp_path)
    forward = Direction.FORWARD
    assert problem.baseline(forward) is problem.function(forward)


def test_a_baseline_of_other_parameters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="must take the parameters of forward_fn"):
        native(ROWS + "def baseline_fn(b):\n    return b\n", tmp_path)


def test_the_filter_times_the_baseline(tmp_path: Path) -> None:
    slow = ROWS + "import time\ndef baseline_fn(a):\n    time.sleep(0.02)\n    return a + 1\n"
    problem = native(slow, tmp_path)
    facts = facts_of(problem, problem.task.workloads[0], Direction.FORWARD, (1, 2), "cpu")
    assert facts["eager_ns"] > 20e6


def native(reference: str, folder: Path) -> NativeProblem:
    (folder / "reference.py").write_text(reference)
    problem = load_problem(make_task(reference, {"N": 5}), folder)
    assert isinstance(problem, NativeProblem)
    return problem
