"""One evaluation on a CPU, as tests of the protocol ask for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Language, Mode
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

ADD = """
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}
"""
"""Right for the task vector_add."""


def only(name: str, workload: str, **changes: Any) -> Task:
    """A built-in task with one of its workloads, and no baselines."""
    task = find_task(name)
    workloads = tuple(w for w in task.workloads if w.name == workload)
    return replace(task, workloads=workloads, **{"baselines": (), **changes})


def request(
    task: Task | str,
    source: str = ADD,
    mode: Mode = Mode.TEST,
    language: Language = Language.CPP,
    **more: Any,
) -> EvaluationRequest:
    return EvaluationRequest(
        evaluation_id="test",
        task=find_task(task) if isinstance(task, str) else task,
        solution=Solution(source=source, language=language),
        mode=mode,
        device="cpu",
        **more,
    )


def evaluated(
    config: SupervisorConfig, *arguments: Any, oracles: Oracles | None = None, **more: Any
) -> EvaluationResult:
    """The result of such a request."""
    return evaluate(request(*arguments, **more), config, oracles=oracles)
