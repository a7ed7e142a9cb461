"""A task whose own code fails on a hidden workload tells submitters nothing of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor import jail
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.evaluate import TASK_FAILED, evaluate

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

KERNEL = """
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}
"""
DRAWS = "def make_inputs(N: int) -> dict[str, Tensor]:\n"


def evaluated(folder: Path, *, hidden: bool) -> EvaluationResult:
    task = load_task(catalog_folder() / "vector_add")
    code = task.files["reference.py"]
    faulty = code.replace(
        DRAWS, f"{DRAWS}    if N == 4099:\n        raise ValueError(f'no room for {{N}}')\n"
    )
    assert faulty != code
    workloads = (
        Workload(name="small", parameters={"N": 64}),
        Workload(name="odd", parameters={"N": 4099}, hidden=hidden),
    )
    files = {**task.files, "reference.py": faulty}
    request = EvaluationRequest(
        evaluation_id="faulty",
        task=replace(task, workloads=workloads, files=files),
        solution=Solution(source=KERNEL, language=Language.CPP),
        mode=Mode.RANKED,
        device="cpu",
    )
    return evaluate(request, SupervisorConfig(cache_folder=folder))


def test_what_it_says_of_a_hidden_workload_is_in_the_log_alone(tmp_path: Path) -> None:
    result = evaluated(tmp_path, hidden=True)
    assert (result.verdict, result.reason) == (Verdict.SYSTEM_ERROR, TASK_FAILED)
    assert "no room for 4099" in result.log


def test_what_it_says_of_a_public_one_is_the_reason(tmp_path: Path) -> None:
    result = evaluated(tmp_path, hidden=False)
    assert result.verdict is Verdict.SYSTEM_ERROR
    assert "no room for 4099" in result.reason
