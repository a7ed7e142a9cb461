"""What a measurement tells beside its times: baselines, threads, unlisted sizes and causes."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import replace

import pytest

from gpu_runner.data.formats import catalog_folder, find_task
from gpu_runner.data.integrity import Check
from gpu_runner.data.scores import is_tuned, score
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles
from gpu_runner.supervisor.tools import experiments
from tests.protocol.evaluating import ADD, evaluated, needs_jail
from tests.results import told

pytestmark = needs_jail
SUM = """
extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  float sum = 0;
  for (int i = 0; i < N; ++i) sum += X[i] * Y[i];
  loss[0] = sum;
}
"""
EXP = (catalog_folder() / "softmax" / "kernels" / "naive.cpp").read_text()
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


@pytest.mark.parametrize(
    ("task", "source", "words"),
    [
        ("vector_add", ADD, ""),
        ("dot_product", SUM, "a scalar reduction, which combines one element after another"),
        ("softmax", EXP, "strict math, which keeps functions such as exp from working on vectors"),
        pytest.param(
            "vector_add", DENORMAL, "denormal numbers: when they are flushed to zero, a call takes",
            marks=pytest.mark.thorough(reason="some processors hardly slow down on denormals"),
        ),
    ],
)  # fmt: skip
def test_a_slow_kernel_is_told_the_cause_and_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
    config: SupervisorConfig,
    oracles: Oracles,
    task: str,
    source: str,
    words: str,
) -> None:
    monkeypatch.setattr(experiments, "_ROUNDS", 1)  # these differ by far more than noise
    plain = replace(find_task(task), baselines=())
    result = evaluated(config, plain, source, Mode.PROFILE, oracles=oracles)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert result.profile is not None, result.environment.profile_error
    causes = [each for each in result.profile.causes if not each.startswith("one thread: ")]
    if not words:
        assert causes == []
        return
    (cause,) = [each for each in causes if each.startswith(words)]
    assert "Remedy: " in cause


@pytest.mark.parametrize(
    ("threads", "processors", "words"),
    [
        (1, 8, "one thread: the kernel leaves 7 of 8"),
        (3, 1, "3 threads share the one processor"),
        *((*each, "") for each in ((1, 1), (8, 8), (0, 8))),
    ],
)
def test_the_number_of_threads_is_a_cause_by_itself(
    threads: int, processors: int, words: str
) -> None:
    run = {"process": 1, "times_ns": [1.0], "seeds": [1], "verified": [0]}
    run["threads"] = threads + 1  # the jail has one more
    workloads = told(workloads=[{"name": "n", "processes": [run]}]).workloads
    found = experiments.thread_cause(list(workloads), processors)
    assert found.startswith(words) if words else found == ""


@pytest.mark.parametrize("result", ["A + B", "A - B"])
def test_a_tasks_own_baseline_is_measured_and_a_wrong_one_is_none(
    config: SupervisorConfig, result: str
) -> None:
    """It waits for 3 ms; one that is wrong accuses no kernel."""
    task = find_task("vector_add")
    code = task.files["reference.py"] + (
        "\n\ndef baseline_fn(A: Tensor, B: Tensor) -> Tensor:\n"
        f"    import time\n    time.sleep(0.003)\n    return {result}\n"
    )
    files = {**task.files, "reference.py": code}
    workloads = (Workload(name="one", parameters={"N": 64}),)
    task = replace(task, files=files, workloads=workloads, baselines=("eager",))
    found = evaluated(config, task, mode=Mode.RANKED)
    assert found.verdict in {Verdict.CORRECT, Verdict.UNSTABLE}
    (workload,) = found.workloads
    if result == "A + B":
        assert workload.baselines["eager"].time_ns > 3e6
    else:
        assert dict(workload.baselines) == {}
        errors = found.environment.baseline_errors
        assert "wrong by the task's own tolerance" in errors["one: eager"]


@pytest.mark.parametrize("clause", ["reduction(+ : sum)", ""])
def test_threads_and_races_stand_in_the_result(
    config: SupervisorConfig, oracles: Oracles, clause: str
) -> None:
    task = replace(find_task("dot_product"), baselines=())
    loop = SUM.replace("float sum", "double sum").replace(
        "  for", f"#pragma omp parallel for {clause}\n  for"
    )
    result = evaluated(config, task, loop, Mode.QUICK, oracles=oracles)
    if clause:
        assert result.verdict is Verdict.CORRECT, result.reason
        team = max(5, len(os.sched_getaffinity(0)) | 1)
        assert result.environment.verified_with_threads == team
        assert result.environment.races == "none in 3 of 3 listed workloads"
    else:  # wrong on any host
        assert result.verdict is Verdict.WRONG_RESULT
        assert "data race between kernel.cpp:" in result.reason
        assert not result.workloads[0].measurement  # nothing was timed


def general(task: Task) -> str:
    return (catalog_folder() / task.name / "kernels" / "good.cpp").read_text()


def tuned(task: Task) -> str:
    """The general kernel, which works four times elsewhere."""
    listed = task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=False)
    known = " || ".join(
        f"({' && '.join(f'{name} == {value}' for name, value in each.parameters.items())})"
        for each in listed
    )
    names = ", ".join(parameter.name for parameter in task.c_signature.parameters)
    return (
        f"#define {task.name} as_it_was\n{general(task)}\n#undef {task.name}\n"
        f'extern "C" {task.signature} {{\n'
        f"  const int times = {known} ? 1 : 4;\n"
        f"  for (int time = 0; time < times; ++time) as_it_was({names});\n}}\n"
    )


OTHERS = ("dot_product", "matrix_mul")


@pytest.mark.parametrize(
    "name", ["softmax", *(pytest.param(name, marks=pytest.mark.thorough) for name in OTHERS)]
)
def test_who_knows_the_listed_sizes_alone_scores_less(
    name: str, config: SupervisorConfig, oracles: Oracles
) -> None:
    task = find_task(name)
    _, listed, _ = task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=False)
    every = task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=True)
    near = [workload for workload in every if workload.unlisted][2:4]
    checked = next(each for each in every if each.hidden and not each.unlisted)
    task = replace(task, workloads=(listed, checked, *near))
    honest, knowing = (
        evaluated(config, task, make(task), Mode.RANKED, oracles=oracles)
        for make in (general, tuned)
    )
    assert honest.verdict is knowing.verdict is Verdict.CORRECT
    assert knowing.speedups["best"] == pytest.approx(honest.speedups["best"], rel=0.5)
    halves = [(each.speedups["best"], each.unlisted_speedups["best"]) for each in (honest, knowing)]
    assert [is_tuned(*each) for each in halves] == [False, True]
    first, second = (score(*each) or 0.0 for each in halves)
    assert first > 1.3 * second
    assert all(w.measurement is None for w in honest.workloads if w.hidden and not w.baselines)


NUMBA = """
import math
import numpy as np
import torch
from numba import njit, prange

@njit(parallel=True, fastmath={"contract", "reassoc"}, cache=True, nogil=True)
def rows(x, out):
    for i in prange(x.shape[0]):
        top = x[i].max()
        total = 0.0
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] = out[i, j] / total

def forward(input, N, C):
    out = np.empty((N, C), np.float32)
    rows(input.numpy(), out)
    return torch.from_numpy(out)
"""


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
def test_loops_that_numba_compiled_before_are_the_authors(
    config: SupervisorConfig, oracles: Oracles
) -> None:
    task = replace(find_task("softmax"), baselines=())
    result = evaluated(config, task, NUMBA, Mode.QUICK, Language.PYTHON, oracles=oracles)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert {each.check for each in result.suspicions} <= {Check.CLOCK, Check.LUCK}
    assert result.environment.work.libraries == {}
