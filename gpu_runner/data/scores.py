"""From times to what boards show: speedups, their means, and MSKernelBench's P; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpu_runner.data.evaluation import EvaluationResult, Measurement, WorkloadResult
from gpu_runner.data.verdict import Verdict


def speedups(
    measurement: Measurement | None, baselines: Mapping[str, Measurement]
) -> dict[str, float]:
    """Of a workload, by baseline, and against the "best" of them; none where nothing compares."""
    if measurement is None or not baselines:
        return {}
    found = {name: b.time_ns / measurement.time_ns for name, b in baselines.items()}
    return {**found, "best": min(found.values())}


def summary(workloads: Sequence[WorkloadResult]) -> dict[str, Any]:
    """The result's headline fields over measured workloads (see `EvaluationResult`)."""
    public = [w for w in workloads if not w.hidden]
    hidden = [w for w in workloads if w.hidden]
    floors = [w.floor_ns / w.measurement.time_ns for w in public if w.floor_ns and w.measurement]
    return {
        "latency_ns": geometric_mean(w.measurement.time_ns for w in public if w.measurement),
        "speedups": _mean_speedups(public),
        "hidden_speedups": _mean_speedups(hidden),
        "floor_fraction": geometric_mean(floors),
        "score": _score(public),
    }


def with_baselines(
    result: EvaluationResult, found: Mapping[str, Mapping[str, Measurement]]
) -> EvaluationResult:
    """The same result with more baselines, by workload and name, and all that follows from them.

    None of them is pending any more.
    """
    workloads = []
    for workload in result.workloads:
        known = {**workload.baselines, **found.get(workload.name, {})}
        ratios = speedups(workload.measurement, known)
        workloads.append(replace(workload, baselines=known, speedups=ratios))
    headline = summary(workloads) if result.verdict is Verdict.CORRECT else {}
    return replace(result, workloads=tuple(workloads), pending_baselines=(), **headline)


def geometric_mean(values: Iterable[float]) -> float | None:
    """Geometric mean of positive values, or None where there are none."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


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
