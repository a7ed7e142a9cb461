"""A result says with how many threads its outputs were verified, and whether these raced."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

KERNEL = """
extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {{
  double sum = 0;
#pragma omp parallel for {clause}
  for (int i = 0; i < N; ++i) sum += (double)X[i] * Y[i];
  *loss = (float)sum;
}}
"""


def evaluated(folder: Path, clause: str) -> EvaluationResult:
    request = EvaluationRequest(
        evaluation_id="threads",
        task=dataclasses.replace(find_task("dot_product"), baselines=()),
        solution=Solution(source=KERNEL.format(clause=clause), language=Language.CPP),
        mode=Mode.QUICK,
        device="cpu",
    )
    return evaluate(request, SupervisorConfig(cache_folder=folder))


def test_threads_and_races_stand_in_the_result(tmp_path: Path) -> None:
    result = evaluated(tmp_path, "reduction(+ : sum)")
    assert result.verdict is Verdict.CORRECT, result.reason
    team = max(5, len(os.sched_getaffinity(0)) | 1)
    assert result.environment.verified_with_threads == team
    assert result.environment.races == "none in 3 of 3 public workloads"


def test_a_missing_reduction_is_wrong_on_any_host(tmp_path: Path) -> None:
    result = evaluated(tmp_path, "")
    assert result.verdict is Verdict.WRONG_RESULT
    assert "data race between kernel.cpp:" in result.reason
    assert not result.workloads[0].measurement  # nothing was timed
