"""A run's candidate that cannot beat the run's best any more is stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor import evaluate as protocol
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

KERNEL = """
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}
"""


def test_a_kernel_that_cannot_win_is_stopped_and_the_reason_says_so(tmp_path: Path) -> None:
    task = load_task(catalog_folder() / "vector_add")
    workloads = tuple(w for w in task.workloads if w.name == "cpu_n16384")
    request = EvaluationRequest(
        evaluation_id="slow",
        task=replace(task, workloads=workloads, baselines=()),
        solution=Solution(source=KERNEL, language=Language.CPP),
        mode=Mode.QUICK,
        device="cpu",
        must_beat_ns={"cpu_n16384": 1.0},
    )
    result = protocol.evaluate(request, SupervisorConfig(cache_folder=tmp_path))
    assert (result.verdict, result.latency_ns) == (Verdict.TOO_SLOW, None)
    assert result.reason.startswith("stopped: cpu_n16384 takes ")
    assert result.reason.endswith(
        "above 1.00 ns it can't beat the run's best, however fast the rest is"
    )
