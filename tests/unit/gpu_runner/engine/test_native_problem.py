"""A native reference gets its arguments by name; its baseline is timed, its verifier judges."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.engine.formats import native_problem
from gpu_runner.engine.formats.native_problem import (
    NativeProblem,
    VerifierError,
    inner_eps,
    residuals,
)
from gpu_runner.engine.problem.arguments import c_arguments
from gpu_runner.engine.problem.problem import ProblemError, load_problem
from gpu_runner.engine.soundness.filters import facts_of
from gpu_runner.engine.soundness.soundness import Soundness
from tests.unit.gpu_runner.engine.conftest import Start
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


def test_a_baseline_of_other_parameters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="must take the same parameters as forward_fn"):
        native(ROWS + "def baseline_fn(b):\n    return b\n", tmp_path)


def native(reference: str, folder: Path) -> NativeProblem:
    (folder / "reference.py").write_text(reference)
    problem = load_problem(make_task(reference, {"N": 5}), folder)
    assert isinstance(problem, NativeProblem)
    return problem


OUTPUTS = {"root": torch.tensor([1.0, 2.0])}
EPS = 2.0**-23

VERIFIED = """
import torch

def make_inputs(n):
    return {"x": torch.rand(n) + 1}

def forward_fn(x):
    return torch.sqrt(x)

def verify_fn(inputs, outputs, eps):
    root = outputs["root"]
    off = (root * root - inputs["x"]).abs() / (4 * eps * inputs["x"])
    return {"root * root - x": off, "negative roots": torch.where(root < 0, 2.0, 0.0)}
"""


def root_task(reference: str = VERIFIED) -> Task:
    signature = "void roots(float* root, const float* x, int n)"
    return make_task(reference, {"n": 9}, Abi.C, signature=signature)


def soundness(folder: Path, reference: str) -> Soundness:
    (folder / "reference.py").write_text(reference)
    return Soundness(load_problem(root_task(reference), folder), "cpu")


def states(asked: Soundness) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    workload = Workload(name="only", parameters={"n": 9})
    for seed in range(3):
        for name, state, _ in asked.step(workload, Direction.FORWARD, seed, ())["mutants"]:
            found.setdefault(name, set()).add(state)
    return found


def test_a_residual_of_one_passes_and_what_is_above_is_found() -> None:
    given: list[Any] = []

    def verify(inputs: dict[str, Any], outputs: dict[str, Tensor]) -> dict[str, Any]:
        given.extend([inputs["n"], outputs["root"].dtype])
        return {"small": 1.0, "large": torch.tensor([[0.5, 1.0], [1.5, 3.0]])}

    (small, right), (large, wrong) = residuals(verify, {"n": 3}, OUTPUTS, EPS)
    assert (small, right.scaled, right.mismatch) == ("small", 1.0, None)
    assert (large, wrong.scaled) == ("large", 3.0)
    assert wrong.mismatch is not None
    assert (wrong.mismatch.index, wrong.mismatch.wrong_elements) == ((1, 0), 2)
    found = "the task's verifier allows residuals of at most 1 and found 1.5"
    assert wrong.mismatch.reason == found
    assert given == [3, torch.float64]


def test_what_a_verifier_does_to_its_copies_changes_nothing() -> None:
    outputs = {"root": torch.ones(2)}
    residuals(
        lambda i, o: {"sum": o["root"].zero_() + i["x"].zero_()},
        outputs | {"x": torch.ones(2)},
        outputs,
        EPS,
    )
    assert outputs["root"].sum() == 2


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({}, "returned dict, not a dict of residuals by name"),
        ({"a": "0"}, "gave 'a' as str"),
        ({"a": torch.zeros(2, dtype=torch.complex64)}, "complex numbers"),
        ({"a": math.nan}, "gave NaN as 'a' for finite outputs"),
        ({"a": -0.5}, "gave -0.5 as 'a': residuals must be 0 or more"),
        ({str(i): 0.0 for i in range(99)}, "more than 16 names"),
    ],
)
def test_an_answer_without_sense_is_the_tasks_fault(result: Any, reason: str) -> None:
    with pytest.raises(VerifierError, match="the task's fault, not the kernel's") as caught:
        residuals(lambda inputs, outputs: result, {}, OUTPUTS, EPS)
    assert reason in str(caught.value)


def test_one_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_problem, "MOST_S", 0.05)
    began = time.monotonic()
    with pytest.raises(VerifierError, match=r"took more than 0\.05 s"):
        residuals(lambda inputs, outputs: time.sleep(30), {}, OUTPUTS, EPS)
    assert time.monotonic() - began < 25


def test_nan_of_outputs_that_hold_nan_is_the_kernels() -> None:
    outputs = {"root": torch.tensor([1.0, math.nan])}
    ((_, found),) = residuals(lambda i, o: {"same": o["root"]}, {}, outputs, EPS)
    assert found.mismatch is not None
    assert found.mismatch.index == (1,)


def test_wrong_kernels_fail_by_the_tasks_own_verifier(tmp_path: Path) -> None:
    asked = soundness(tmp_path, VERIFIED)
    found = states(asked)
    assert {"the opposite sign", "NaN everywhere", "very large numbers", "inputs in TF32"} <= set(
        found
    )
    assert [name for name, seen in found.items() if "failed" not in seen] == []
    workload = Workload(name="only", parameters={"n": 9})
    right = asked.step(workload, Direction.FORWARD, 7, ())["honest"]
    assert all(not reason for _, reason in right.values())
    assert 0 < right["reference"][0] <= 0.5
    facts = facts_of(asked._problem, workload, Direction.FORWARD, (1, 2), "cpu")
    assert facts["outputs"]["root"] == {"zeros": 0.0, "other_draw": 0.0, "axes": [0.0]}
    assert facts["arguments"] == {"x": True}


def test_the_oracle_judges_by_it(start: Start) -> None:
    evaluation = start(root_task())
    evaluation.describe()
    offset = evaluation.fill(5)[0]
    root = evaluation.inputs.tensor(offset, evaluation.read[0]).sqrt()
    written = evaluation.outputs.tensor(evaluation.places[0], evaluation.described["outputs"][0])
    written.copy_(root)
    answer = evaluation.take_and_verify(5, explain=True)
    assert [entry["name"] for entry in answer["outputs"]] == ["root * root - x", "negative roots"]
    assert [entry["mismatch"] for entry in answer["outputs"]] == [None, None]
    written[3] = -root[3]
    wrong = evaluation.take_and_verify(5, explain=True)["outputs"][1]
    assert (wrong["mismatch"]["index"], wrong["scaled"]) == ([3], 2.0)


def test_the_oracle_says_whose_fault_it_is_and_goes_on(start: Start) -> None:
    evaluation = start(root_task(VERIFIED.replace('outputs["root"]', 'outputs["roots"]')))
    evaluation.describe()
    evaluation.fill(5)
    answer = evaluation.take_and_verify(5)
    assert not answer["ok"]
    assert "verify_fn() raised KeyError: 'roots': that is the task's fault" in answer["error"]
    assert evaluation.ask("describe", seed=1)["ok"]
