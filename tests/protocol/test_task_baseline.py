"""A task's own baseline is measured in place of its reference, and one that is wrong is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

KERNEL = """
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}
"""


def evaluated(config: SupervisorConfig, result: str) -> EvaluationResult:
    """vector_add, ranked, with a baseline that waits for 3 ms and returns `result`."""
    task = replace(load_task(catalog_folder() / "vector_add"), baselines=("eager",))
    code = task.files["reference.py"] + (
        "\n\ndef baseline_fn(A: Tensor, B: Tensor) -> Tensor:\n"
        f"    import time\n    time.sleep(0.003)\n    return {result}\n"
    )
    files = {**task.files, "reference.py": code}
    request = EvaluationRequest(
        evaluation_id="baseline",
        task=replace(task, files=files, workloads=(Workload(name="one", parameters={"N": 64}),)),
        solution=Solution(source=KERNEL, language=Language.CPP),
        mode=Mode.RANKED,
        device="cpu",
    )
    return evaluate(request, config)


def test_its_time_is_the_baseline_s(config: SupervisorConfig) -> None:
    found = evaluated(config, "A + B")
    assert found.verdict in {Verdict.CORRECT, Verdict.UNSTABLE}
    (workload,) = found.workloads
    assert workload.baselines["eager"].time_ns > 3e6


def test_a_wrong_one_is_no_baseline_and_accuses_no_kernel(config: SupervisorConfig) -> None:
    found = evaluated(config, "A - B")
    assert found.verdict in {Verdict.CORRECT, Verdict.UNSTABLE}
    (workload,) = found.workloads
    assert dict(workload.baselines) == {}
    errors = found.environment.baseline_errors
    assert "wrong by the task's own tolerance" in errors["one: eager"]
