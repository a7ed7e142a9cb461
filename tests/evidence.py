"""What an honest runner shows beside a time, made up; the site refuses a time without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpu_runner.data.evaluation import (
    BuildReport,
    EvaluationRequest,
    EvaluationResult,
    Measurement,
    ProcessRun,
    StageTime,
    WorkloadResult,
)
from gpu_runner.data.protocol import LEAST_CALLS, PLANS
from gpu_runner.data.scores import speedups, summary
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Mode, Stage, Verdict

EAGER_NS, COMPILED_NS, FLOOR_NS = 4000.0, 3000.0, 100.0
BUILD = BuildReport(
    ok=True,
    cached=False,
    duration_s=0.8,
    log="",
    command="g++ -O3 -march=native -fopenmp -shared kernel.cpp",
    compiler="g++ 14.2",
    digest="0" * 64,
)


def result(request: EvaluationRequest, latency_ns: float) -> EvaluationResult:
    """A correct result, each of whose workloads takes that time."""
    rows = [_workload(each, request, latency_ns) for each in workloads(request)]
    return EvaluationResult(
        evaluation_id=request.evaluation_id,
        attempt=request.attempt,
        verdict=Verdict.CORRECT,
        reason="all outputs are right",
        mode=request.mode,
        device=request.device,
        task=request.task.name,
        task_digest=request.task.digest(),
        solution_digest=request.solution.digest(),
        workloads=tuple(rows),
        build=BUILD,
        stages=stages(),
        **summary(rows) | {"latency_ns": latency_ns},  # not that of rounded logarithms
    )


def workloads(request: EvaluationRequest) -> tuple[Workload, ...]:
    """Those that its mode measures."""
    solution = request.solution
    kind, hidden = solution.language.device_kinds[0], PLANS[request.mode].hidden
    return request.task.workloads_for(kind, solution.direction, hidden=hidden)


def processes(mode: Mode, time_ns: float, workload: Workload) -> tuple[ProcessRun, ...]:
    """As many as the mode asks for, whose fastest calls took that time."""
    plan = PLANS[mode].on(workload)
    calls = range(LEAST_CALLS)
    return tuple(
        ProcessRun(
            process=number,
            times_ns=tuple(time_ns * (1 + 0.01 * call) for call in calls),
            seeds=tuple(100 * number + call for call in calls),
            verified=(0,),
        )
        for number in range(plan.processes)
    )


def stages(names: Iterable[Stage] = tuple(Stage)) -> tuple[StageTime, ...]:
    """These, all of them over within a second."""
    return tuple(
        StageTime(stage=stage, started_s=0.1 * place, duration_s=0.08 + 0.01 * place)
        for place, stage in enumerate(names)
    )


def work(request: EvaluationRequest, workload: Workload) -> dict[str, Any]:
    """What a call has to do by the task's formulas."""
    cost = request.task.cost(workload, request.solution.direction)
    return {"flops": cost.flops, "bytes": cost.bytes, "weight": cost.weight or 1.0} if cost else {}


def baselines_of(
    request: EvaluationRequest, workload: Workload, known: Mapping[str, Measurement]
) -> dict[str, Measurement]:
    """Those of `known` that a task has, where it is timed."""
    return {name: known[name] for name in request.task.baselines if workload.timed}


def _workload(workload: Workload, request: EvaluationRequest, time_ns: float) -> WorkloadResult:
    measurement = _measurement(time_ns) if workload.timed else None
    known = {"eager": _measurement(EAGER_NS), "compiled": _measurement(COMPILED_NS)}
    baselines = baselines_of(request, workload, known)
    return WorkloadResult(
        name=workload.name,
        parameters=workload.parameters,
        hidden=workload.hidden,
        measurement=measurement,
        processes=processes(request.mode, time_ns, workload),
        baselines=baselines,
        speedups=speedups(measurement, baselines),
        floor_ns=FLOOR_NS,
        **work(request, workload),
    )


def _measurement(time_ns: float) -> Measurement:
    return Measurement(time_ns=time_ns, low_ns=0.99 * time_ns, high_ns=1.01 * time_ns, calls=30)
