"""Whether a result can be what it says: complete for its mode, consistent, and not too fast.

A runner may lie about what it measures. This finds the lies that contradict themselves, the task,
or the time that passed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings

from gpu_runner.data.baselines import BaselineReport
from gpu_runner.data.evaluation import EvaluationResult, Measurement, WorkloadResult
from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import LEAST_CALLS, PLANS, RESOLUTION_NS, UNSTABLE_FROM
from gpu_runner.data.scores import speedups, summary
from gpu_runner.data.task import Cost, Task, Workload
from gpu_runner.data.verdict import DeviceKind, Direction, Mode, Stage, Verdict
from gpu_runner.data.wire import SHORTEST_NS
from runs_app.core.errors import Implausible
from runs_app.models import BaselineMeasurement, Evaluation

_SCORED = (Mode.RANKED, Mode.AUDIT)
_NEEDED = (Stage.BUILD, Stage.MEASURE, Stage.VERIFY)
_CLOCKS_S = 5.0  # by which two clocks may differ over a job, and a report may come late
_ROUNDING = 1e-6


def check_plausible(evaluation: Evaluation, result: EvaluationResult, now: datetime) -> None:
    """Refuse what no honest runner reports; raises `Implausible` with the first reason."""
    for reason in _faults(evaluation, result, now):
        raise Implausible(f"result.{reason}")


def check_report(measurement: BaselineMeasurement, report: BaselineReport) -> None:
    """The same of baselines that were measured apart: others' speedups will rest on them."""
    task, direction = measurement.version.data, Direction(measurement.direction)
    found = task.workloads_for(DeviceKind(measurement.device.kind), direction, hidden=True)
    timed = {workload.name for workload in found if workload.timed}
    if report.anchor_ns is not None and not SHORTEST_NS <= report.anchor_ns < math.inf:
        raise Implausible(f"report.anchor_ns is {report.anchor_ns}, which is not a valid time")
    for name, baselines in report.baselines.items():
        if name not in timed:
            raise Implausible(f"report.baselines lists {name[:100]!r}, which the task doesn't time")
        for reason in _odd_baselines(baselines, task):
            raise Implausible(f"report.baselines.{name} {reason}")


def _faults(evaluation: Evaluation, result: EvaluationResult, now: datetime) -> Iterator[str]:
    facts: Mapping[str, tuple[object, object]] = {
        "evaluation_id": (result.evaluation_id, str(evaluation.pk)),
        "attempt": (result.attempt, evaluation.attempt),
        "mode": (result.mode.value, evaluation.mode),
        "device": (result.device, evaluation.device_id),
        "task_digest": (result.task_digest, evaluation.task_version.digest),
        "solution_digest": (result.solution_digest, evaluation.submission.digest),
    }
    for field, (found, expected) in facts.items():
        if found != expected:
            yield f"{field} is {found!r}, expected {expected!r}"
    if (result.verdict is Verdict.COMPILED) != (result.mode is Mode.COMPILE) and (
        result.verdict in (Verdict.COMPILED, Verdict.CORRECT)
    ):
        yield f"verdict is {result.verdict}, in {result.mode} mode"
    elapsed_s = (now - (evaluation.started_at or now)).total_seconds()
    for stage in result.stages:
        if not 0 <= stage.started_s + stage.duration_s <= elapsed_s + _CLOCKS_S:
            yield f"stages.{stage.stage} ends after the job was reported ({elapsed_s:.1f} s)"
    if result.verdict is Verdict.CORRECT:
        yield from _incomplete(evaluation, result)
        yield from _contradictions(result, elapsed_s)


def _incomplete(evaluation: Evaluation, result: EvaluationResult) -> Iterator[str]:
    """What a correct result of its mode lacks."""
    if result.build is None or not result.build.ok or not result.build.digest:
        yield "build is missing, so we don't know what ran"
    done = {stage.stage for stage in result.stages}
    for stage in _NEEDED:
        if stage not in done:
            yield f"stages lacks {stage}"
    plan, task = PLANS[result.mode], evaluation.task_version.data
    kind, direction = DeviceKind(evaluation.device.kind), Direction(evaluation.direction)
    wanted = {w.name: w for w in task.workloads_for(kind, direction, hidden=plan.hidden)}
    found = {w.name: w for w in result.workloads}
    if set(wanted) != set(found) or len(found) != len(result.workloads):
        yield "workloads don't match the task's"
        return
    for name, workload in found.items():
        yield from _unlike(workload, wanted[name])
        yield from _too_little(workload, plan.on(wanted[name]), timed=wanted[name].timed)
        odd = [
            *_odd(workload, task.cost(wanted[name], direction)),
            *_odd_baselines(workload.baselines, task),
            *(_unsure(workload, kind) if result.mode in _SCORED else ()),
        ]
        yield from (f"workloads.{name} {each}" for each in odd)


def _unlike(workload: WorkloadResult, wanted: Workload) -> Iterator[str]:
    """What a workload has otherwise than its task."""
    if workload.hidden != wanted.hidden:
        yield f"workloads.{wanted.name} disagrees with the task about whether it is hidden"
    if dict(workload.parameters) != dict(wanted.parameters):
        yield f"workloads.{wanted.name} has different parameters than in the task"


def _too_little(workload: WorkloadResult, plan: Plan, *, timed: bool) -> Iterator[str]:
    """What of a workload's evidence is missing."""
    where = f"workloads.{workload.name}"
    if timed != (workload.measurement is not None):
        yield f"{where} has no time" if timed else f"{where} has a time, but it is a hidden check"
        return
    if len(workload.processes) < plan.processes:
        yield f"{where} ran in {len(workload.processes)} processes instead of {plan.processes}"
    for run in workload.processes:
        if len(run.times_ns) < min(plan.min_calls, LEAST_CALLS):
            yield f"{where} has a process with only {len(run.times_ns)} calls"
        calls = len(run.times_ns)
        if len(set(run.seeds)) != calls or len(run.seeds) != calls:
            yield f"{where} has calls without inputs of their own"
        if not run.verified or not set(run.verified) <= set(range(calls)):
            yield f"{where} has a process without verified outputs"
        if not all(SHORTEST_NS <= time_ns < math.inf for time_ns in (*run.times_ns, *run.hard_ns)):
            yield f"{where} has an invalid time"


def _odd(workload: WorkloadResult, cost: Cost | None) -> Iterator[str]:
    """Numbers of a workload that do not come from its task, or are none.

    Pages and prompts of others calculate with them as well.
    """
    weight = cost.weight if cost and cost.weight > 0 else 1.0
    expected = (cost.flops, cost.bytes, weight) if cost else (None, None, weight)
    found = (workload.flops, workload.bytes, workload.weight)
    if not all(map(_agree, found, expected)):
        yield "has bytes, operations or a weight that differ from the task's"
    for field in ("floor_ns", "tensor_bytes", "claimed_ns"):
        value = getattr(workload, field)
        if value is not None and not 0 < value < math.inf:
            yield f"has {value} as {field}"


def _odd_baselines(baselines: Mapping[str, Measurement], task: Task) -> Iterator[str]:
    for name, measurement in baselines.items():
        if name not in task.baselines:
            yield f"has a baseline {name[:100]!r}, which the task doesn't define"
        if measurement.high_ns > settings.JOB_TIMEOUT_S * 1e9:
            yield f"has a baseline {name!r} with calls that take longer than a job may"


def _unsure(workload: WorkloadResult, kind: DeviceKind) -> Iterator[str]:
    """An interval so wide that it would excuse any other time; an honest runner says UNSTABLE."""
    measured = workload.measurement
    if measured is None or workload.hidden:
        return
    if measured.noise(RESOLUTION_NS[kind]) > UNSTABLE_FROM * (1 + _ROUNDING):
        yield f"has a time that is only known to within ±{measured.relative_half_width * 100:.0f} %"


def _contradictions(result: EvaluationResult, elapsed_s: float) -> Iterator[str]:
    """Numbers that do not follow from those below them."""
    total_ns = 0.0
    for workload in result.workloads:
        times = [time_ns for run in workload.processes for time_ns in run.times_ns]
        total_ns += sum(times)
        if workload.measurement and workload.measurement.time_ns < min(times) * (1 - _ROUNDING):
            yield f"workloads.{workload.name} has a time shorter than any of its calls"
        if not _agree(workload.speedups, speedups(workload.measurement, workload.baselines)):
            yield f"workloads.{workload.name} has speedups that don't match its baselines"
    if total_ns > (elapsed_s + _CLOCKS_S) * 1e9:
        yield f"workloads took {total_ns / 1e9:.1f} s, longer than the job"
    for field, expected in summary(result.workloads).items():
        if not _agree(getattr(result, field), expected):
            yield f"{field} doesn't match its workloads"


def _agree(found: Any, expected: Any) -> bool:
    if isinstance(expected, Mapping):
        return set(found) == set(expected) and all(_agree(found[k], expected[k]) for k in expected)
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=_ROUNDING)
