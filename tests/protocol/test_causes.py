"""A profile names why a kernel on a CPU is slow, as an experiment has shown."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, WorkloadResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles
from gpu_runner.supervisor.tools.experiments import thread_cause
from tests.results import told

SUM = """
extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  float sum = 0;
  for (int i = 0; i < N; ++i) sum += X[i] * Y[i];
  loss[0] = sum;
}
"""
DENORMAL = """
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) {
    float small = A[i] * 1e-20f, sum = 0;
    for (int turn = 0; turn < 16; ++turn) {
      float square = small * small;
      sum += square / 3.f;
      small += square * 1.1f;
    }
    C[i] = A[i] + B[i] + sum;
  }
}
"""
PLAIN = """
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}
"""


def causes(config: SupervisorConfig, oracles: Oracles, task: str, source: str) -> list[str]:
    request = EvaluationRequest(
        evaluation_id="causes",
        task=dataclasses.replace(find_task(task), baselines=()),
        solution=Solution(source=source, language=Language.CPP),
        mode=Mode.PROFILE,
        device="cpu",
    )
    result = evaluate(request, config, oracles=oracles)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert result.profile is not None, result.environment.profile_error
    return [each for each in result.profile.causes if not each.startswith("one thread: ")]


@pytest.mark.timed
@pytest.mark.parametrize(
    ("task", "source", "words"),
    [
        ("dot_product", SUM, "a scalar reduction, one element after another"),
        pytest.param(
            "vector_add", DENORMAL, "denormal numbers: with them flushed to zero, a call takes",
            marks=pytest.mark.thorough(reason="some processors hardly slow down on denormals"),
        ),
    ],
)  # fmt: skip
def test_a_slow_kernel_is_told_the_cause_and_the_remedy(
    config: SupervisorConfig, oracles: Oracles, task: str, source: str, words: str
) -> None:
    (cause,) = [each for each in causes(config, oracles, task, source) if each.startswith(words)]
    assert "Remedy: " in cause


@pytest.mark.timed
def test_a_plain_kernel_has_none(config: SupervisorConfig, oracles: Oracles) -> None:
    assert causes(config, oracles, "vector_add", PLAIN) == []


def with_threads(threads: int) -> list[WorkloadResult]:
    """`threads` of a kernel; the jail has one more."""
    run = {"process": 1, "times_ns": [1.0], "seeds": [1], "verified": [0], "threads": threads + 1}
    return list(told(workloads=[{"name": "n", "processes": [run]}]).workloads)


def test_the_number_of_threads_is_a_cause_by_itself() -> None:
    assert thread_cause(with_threads(1), 8).startswith("one thread: the kernel leaves 7 of 8")
    assert thread_cause(with_threads(3), 1).startswith("3 threads share the one processor")
    for threads, processors in ((1, 1), (8, 8), (0, 8)):
        assert thread_cause(with_threads(threads), processors) == ""
