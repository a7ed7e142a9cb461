"""Invented results of evaluations: legal in every field, and measured by nobody."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from gpu_runner.data.evaluation import (
    BuildReport,
    EvaluationRequest,
    EvaluationResult,
    Measurement,
    Mismatch,
    OutputError,
    WorkloadResult,
)
from gpu_runner.data.scores import speedups, summary
from gpu_runner.data.verdict import Stage, Verdict
from tests import evidence

_COMPILE_LOG = (
    "kernel.cpp:3:14: error: 'vec' was not declared in this scope\n"
    "    3 |     float x = vec[i];\n      |               ^~~\n"
)
_PEAK = {
    "bytes_per_s": 2.1e11,
    "flop_per_s": 1.4e12,
    "fraction": 0.4,
    "source": "measured on this host by doctor --calibrate",
}
_REASONS = {
    Verdict.CORRECT: "every verified output is within the tolerance",
    Verdict.WRONG_RESULT: "out[3, 17] is off by 3.1e-2, bound 1.2e-6",
    Verdict.COMPILE_ERROR: _COMPILE_LOG.splitlines()[0],
    Verdict.UNSTABLE: "the time is only known to ±21 %; the limit is ±15 %",
}


def measurement(rng: random.Random, time_ns: float) -> Measurement:
    """A median with an interval of a plausible width."""
    low, high = rng.uniform(0.002, 0.02), rng.uniform(0.002, 0.02)
    return Measurement(
        time_ns=time_ns,
        low_ns=time_ns * (1 - low),
        high_ns=time_ns * (1 + high),
        calls=rng.randint(30, 600),
    )


def workload_results(
    rng: random.Random, request: EvaluationRequest, level: float
) -> Iterator[WorkloadResult]:
    """One result a workload, about `level` times as fast as the best baseline."""
    task, direction = request.task, request.solution.direction
    for index, workload in enumerate(evidence.workloads(request)):
        eager_ns = 3000.0 * 1.7 ** (index % 12) * rng.uniform(0.6, 1.6)
        compiled_ns = eager_ns * rng.uniform(0.6, 1.1)
        own_ns = min(eager_ns, compiled_ns) / (level * rng.uniform(0.85, 1.2))
        cost = task.cost(workload, direction)
        own = measurement(rng, own_ns)
        known = dict.fromkeys(task.baselines, measurement(rng, compiled_ns))  # and of libraries
        known["eager"] = measurement(rng, eager_ns)
        baselines = evidence.baselines_of(request, workload, known)
        yield WorkloadResult(
            name=workload.name,
            parameters=workload.parameters,
            hidden=workload.hidden,
            measurement=own if workload.timed else None,
            processes=evidence.processes(request.mode, own_ns, workload),
            errors=(OutputError(output="out", scaled=rng.uniform(0.01, 0.6), relative=1e-7),),
            baselines=baselines,
            speedups=speedups(own, baselines),
            **evidence.work(request, workload),
            floor_ns=own_ns * rng.uniform(0.2, 0.8) if cost else None,
        )


def result(
    rng: random.Random, request: EvaluationRequest, verdict: Verdict, level: float = 1.5
) -> EvaluationResult:
    """A result with this verdict."""
    failed = verdict is Verdict.COMPILE_ERROR
    rows = () if failed else tuple(workload_results(rng, request, level))
    stages = (Stage.BUILD,) if failed else tuple(Stage)
    return EvaluationResult(
        evaluation_id=request.evaluation_id,
        attempt=request.attempt,
        verdict=verdict,
        reason=_REASONS.get(verdict, "the kernel broke off"),
        mode=request.mode,
        device=request.device,
        task=request.task.name,
        task_digest=request.task.digest(),
        solution_digest=request.solution.digest(),
        workloads=rows,
        mismatch=_mismatch(rows[0].name) if verdict is Verdict.WRONG_RESULT else None,
        build=_build(failed=failed),
        stages=evidence.stages(stages),
        environment={
            "device_name": "AMD EPYC 9654",
            "cpus": 32,
            "torch": "2.13.0",
            "tf32": False,
            "peaks": {"measured": _PEAK},
        },
        **(summary(rows) if verdict is Verdict.CORRECT else {}),
    )


def _mismatch(workload: str) -> Mismatch:
    return Mismatch(
        workload=workload,
        output="out",
        reason="off by 3.1e-2, bound 1.2e-6",
        index=(3, 17),
        expected=0.125,
        actual=0.1561,
        bound=1.2e-6,
        wrong_elements=1531,
        elements=4096,
    )


def _build(*, failed: bool) -> BuildReport:
    return replace(evidence.BUILD, ok=False, log=_COMPILE_LOG) if failed else evidence.BUILD
