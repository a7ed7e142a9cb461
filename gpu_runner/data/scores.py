"""From times to what boards show: speedups, their means, and MSKernelBench's P; pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpu_runner.data.evaluation import EvaluationResult, Measurement, WorkloadResult
from gpu_runner.data.rounding import all_three_digits, three_digits
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
    unlisted = [w for w in workloads if w.hidden and w.measurement]
    listed, others = _mean_speedups(public), all_three_digits(_mean_speedups(unlisted))
    floors = [w.floor_ns / w.measurement.time_ns for w in public if w.floor_ns and w.measurement]
    return {
        "latency_ns": geometric_mean(w.measurement.time_ns for w in public if w.measurement),
        "speedups": listed,
        "unlisted_speedups": others,
        "floor_fraction": geometric_mean(floors),
        "p_score": _p_score(public),
        "hard_ratio": _hard_ratio(public),
    }


def with_baselines(
    result: EvaluationResult,
    found: Mapping[str, Mapping[str, Measurement]],
    *,
    pending: Collection[str] = (),
) -> EvaluationResult:
    """The same result with more baselines, by workload and name, and all that follows from them.

    Afterwards it waits for those of its baselines that are still `pending`.
    """
    workloads = []
    for workload in result.workloads:
        known = {**workload.baselines, **found.get(workload.name, {})}
        ratios = speedups(workload.measurement, known)
        workloads.append(replace(workload, baselines=known, speedups=ratios))
    headline = summary(workloads) if result.verdict is Verdict.CORRECT else {}
    left = tuple(name for name in result.pending_baselines if name in pending)
    return replace(result, workloads=tuple(workloads), pending_baselines=left, **headline)


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


def score(listed: float | None, unlisted: float | None) -> float | None:
    """The score that boards rank by: the geometric mean of both speedups over the best baseline.

    None if either speedup is unknown.
    """
    return math.sqrt(listed * unlisted) if listed and unlisted else None


TUNED = 1.2
"""A kernel whose speedup on listed sizes is so many times that on unlisted ones counts as tuned.
Source: judgement.
"""


LEAST_HARD, SLOWER_ON_HARD = 6, 1.2
"""Calls with hard values at least that say something, and from which ratio on it is told.

Source: judgement; single calls on a CPU vary by a tenth.
"""


def is_tuned(listed: float | None, unlisted: float | None) -> bool:
    """Whether a kernel does so much better on listed sizes that it counts as tuned to them."""
    return bool(listed and unlisted and listed >= TUNED * unlisted)


def _hard_ratio(workloads: Sequence[WorkloadResult]) -> float | None:
    """Medians of calls with hard values over those of ordinary ones; None for too few calls."""
    calls, ratios = 0, []
    for workload in workloads:
        hard = [ns for run in workload.processes for ns in run.hard_ns]
        usual = [ns for run in workload.processes for ns in run.times_ns]
        if hard and usual:
            calls += len(hard)
            ratios.append(statistics.median(hard) / statistics.median(usual))
    mean = geometric_mean(ratios) if calls >= LEAST_HARD else None
    return None if mean is None else three_digits(mean)


def _p_score(workloads: Sequence[WorkloadResult]) -> float | None:
    """MSKernelBench's P: speedups against the best baseline, weighted by work."""
    if not workloads or any("best" not in w.speedups for w in workloads):
        return None
    total = sum(w.weight for w in workloads)
    return sum(w.weight * w.speedups["best"] for w in workloads) / total
