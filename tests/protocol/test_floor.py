"""A time below the physical floor is right, and yet a person must look before it counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.integrity import Check
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Work
from gpu_runner.data.verdict import Direction, Language, Mode, Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.report import describe
from gpu_runner.supervisor.tools import peaks
from gpu_runner.supervisor.tools.calibrate import Calibration, store

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

KERNEL = """
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}
"""
SLOW = Calibration(bytes_per_s={"read": 1e9, "copy": 1e9}, flops={"float32": 1e11, "float64": 5e10})


def evaluated(bytes_formula: str, folder: Path) -> EvaluationResult:
    """An honest kernel on one workload of a task that claims so many bytes for it."""
    config = SupervisorConfig(cache_folder=folder)
    store(config, SLOW)
    task = load_task(catalog_folder() / "vector_add")
    workloads = tuple(w for w in task.workloads if w.name == "cpu_n16384")
    work = {Direction.FORWARD: Work(flops="N", bytes=bytes_formula)}
    request = EvaluationRequest(
        evaluation_id="floor",
        task=replace(task, workloads=workloads, work=work),
        solution=Solution(source=KERNEL, language=Language.CPP),
        mode=Mode.TEST,
        device="cpu",
    )
    return evaluate(request, config)


def test_an_honest_kernel_that_beats_an_inflated_floor_is_suspected_not_accused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peaks, "CPU_LEAST_BYTES_PER_S", 0.0)
    result = evaluated("200 * N", tmp_path)
    assert result.verdict is Verdict.CORRECT, result.reason + result.log
    (found,) = result.suspicions
    assert found.check is Check.FLOOR
    assert found.reason.startswith("cpu_n16384 took")
    assert result.environment.peaks.measured.fraction > 1
    assert "fastest calls" in result.environment.estimator
    printed = describe(result)
    assert "of what was measured to be possible" in printed
    assert "a site would hold this result back for an admin's decision" in printed
    assert "    floor: cpu_n16384 took" in printed
