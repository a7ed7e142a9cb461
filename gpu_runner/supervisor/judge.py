"""Turns measured facts into numbers and a verdict; pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_runner.data.evaluation import (
    Measurement,
    OutputError,
    ProcessRun,
    WorkloadResult,
)
from gpu_runner.data.task import Cost, Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.supervisor.device import Peak
from gpu_runner.supervisor.plan import RESOLUTION_NS
from gpu_runner.supervisor.statistics import geometric_mean, measure

_BYTES_MARGIN, _FLOPS_MARGIN = 0.5, 0.2


@dataclass
class Facts:
    """What is known of one workload: runs, largest errors by output, baselines by name."""

    runs: list[ProcessRun] = field(default_factory=list)
    errors: dict[str, OutputError] = field(default_factory=dict)
    baselines: Mapping[str, Measurement] = field(default_factory=dict)


def workload_result(
    task: Task, workload: Workload, direction: Direction, facts: Facts, peak: Peak | None
) -> WorkloadResult:
    """Median, interval, speedups and floor of one workload; the same facts give the same result."""
    rng = random.Random(0)  # noqa: S311 - resampling, no secret
    measurement = measure([run.times_ns for run in facts.runs], rng) if facts.runs else None
    cost = task.cost(workload, direction)
    return WorkloadResult(
        name=workload.name,
        parameters=workload.parameters,
        hidden=workload.hidden,
        measurement=measurement,
        processes=tuple(facts.runs),
        errors=tuple(facts.errors.values()),
        baselines=facts.baselines,
        speedups=_speedups(measurement, facts.baselines),
        flops=cost.flops if cost else None,
        bytes=cost.bytes if cost else None,
        weight=cost.weight if cost and cost.weight > 0 else 1.0,
        floor_ns=floor_ns(cost, peak, task.dtype) if cost and peak else None,
    )


def _speedups(
    measurement: Measurement | None, baselines: Mapping[str, Measurement]
) -> dict[str, float]:
    if measurement is None or not baselines:
        return {}
    found = {name: b.median_ns / measurement.median_ns for name, b in baselines.items()}
    return {**found, "best": min(found.values())}


def floor_ns(cost: Cost, peak: Peak, dtype: str) -> float | None:
    """The larger of compulsory bytes over bandwidth and FLOPs over peak rate, in ns."""
    rate = peak.flops.get(dtype)
    if rate is None:
        return None
    seconds = max(cost.bytes / peak.bytes_per_s, cost.flops / rate)
    return seconds * 1e9 if seconds > 0 else None


def beats_physics(workloads: Sequence[WorkloadResult], peak: Peak, dtype: str) -> str:
    """Which workload's time is below what the device can do, and by what; empty if none is.

    The margins leave room for outputs that stay in a cache (half the bytes) and for algorithms
    with fewer operations than the formula counts, such as Winograd's (a fifth).
    """
    rate = peak.flops.get(dtype)
    for workload in workloads:
        if workload.measurement is None or workload.bytes is None or workload.flops is None:
            continue
        moved_s = _BYTES_MARGIN * workload.bytes / peak.bytes_per_s
        computed_s = _FLOPS_MARGIN * workload.flops / rate if rate else 0.0
        least_ns = max(moved_s, computed_s) * 1e9
        if workload.measurement.median_ns < least_ns:
            if workload.hidden:
                return "claims a time on a hidden workload that the device cannot reach"
            return (
                f"claims {workload.measurement.median_ns:.0f} ns on {workload.name}, but the device"
                f" needs at least {least_ns:.0f} ns for its bytes and operations"
            )
    return ""


def summary(workloads: Sequence[WorkloadResult]) -> dict[str, Any]:
    """The result's headline fields over measured workloads (see `EvaluationResult`)."""
    public = [w for w in workloads if not w.hidden]
    hidden = [w for w in workloads if w.hidden]
    floors = [w.floor_ns / w.measurement.median_ns for w in public if w.floor_ns and w.measurement]
    return {
        "latency_ns": geometric_mean(w.measurement.median_ns for w in public if w.measurement),
        "speedups": _mean_speedups(public),
        "hidden_speedups": _mean_speedups(hidden),
        "floor_fraction": geometric_mean(floors),
        "score": _score(public),
    }


def _mean_speedups(workloads: Sequence[WorkloadResult]) -> dict[str, float]:
    """Geometric means of the baselines that every workload has."""
    if not workloads:
        return {}
    names = set.intersection(*(set(w.speedups) for w in workloads))
    means = {name: geometric_mean(w.speedups[name] for w in workloads) for name in sorted(names)}
    return {name: mean for name, mean in means.items() if mean is not None}


def _score(workloads: Sequence[WorkloadResult]) -> float | None:
    """MSKernelBench's P: speedups against the best baseline, weighted by work."""
    if not workloads or any("best" not in w.speedups for w in workloads):
        return None
    total = sum(w.weight for w in workloads)
    return sum(w.weight * w.speedups["best"] for w in workloads) / total


def noisiest(workloads: Sequence[WorkloadResult]) -> tuple[str, float]:
    """Name and relative half-width of the public workload with the widest interval.

    An interval narrower than the clock's resolution counts as exact.
    """
    public = [w for w in workloads if w.measurement and not w.hidden]
    widths = [(_width(w.measurement), w.name) for w in public if w.measurement]
    width, name = max(widths)
    return name, width


def _width(measurement: Measurement) -> float:
    half = (measurement.high_ns - measurement.low_ns) / 2
    return measurement.relative_half_width if half > RESOLUTION_NS else 0.0
