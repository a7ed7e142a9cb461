"""From a runner's result to the columns that lists and boards sort by."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gpu_runner.data.evaluation import EvaluationResult, Measurement, WorkloadResult
from gpu_runner.data.rounding import all_three_digits, three_digits
from gpu_runner.data.task import PYTORCH
from gpu_runner.data.verdict import Direction, Mode
from runs_app.core.work.noise import NINETY_FIVE, with_noise
from runs_app.models import BaselineMeasurement, Evaluation
from runs_app.models.runner_job import LONGEST_TEXT
from tasks_app.disclosure import public_reason
from tasks_app.selectors import outlines

UNMEASURED = (Mode.TEST, Mode.QUICK, Mode.PROFILE)
"""Modes that measure no baselines: their results have those that are known."""


def apply(evaluation: Evaluation, result: EvaluationResult, between: float) -> None:
    """Put verdict, reason and numbers on the row; the caller saves it.

    The reason is the public one; the stored result has the full one for admins. `merit` is the
    score or, without one or while baselines are missing, the negated time: such results rank below
    all others. `awaits_baselines` holds for any mode, as long as a baseline may still come: a
    result that other modes compare with fewer of them is as provisional as a ranked one.
    between: as of `noise_between`.
    """
    evaluation.verdict = result.verdict.value
    hidden = evaluation.task_version.hidden_names
    evaluation.reason = public_reason(result, hidden)[:LONGEST_TEXT]
    evaluation.latency_ns = result.latency_ns
    evaluation.speedup_best = result.speedups.get("best")
    evaluation.speedup_eager = result.speedups.get("eager")
    evaluation.speedup_compiled = result.speedups.get("compiled")
    evaluation.unlisted_speedup = all_three_digits(result.unlisted_speedups).get("best")
    evaluation.score = evaluation.own_score
    evaluation.floor_fraction = result.floor_fraction
    evaluation.p_score = result.p_score
    lacks = bool(result.speedups) and lacks_some(evaluation, result)
    evaluation.awaits_baselines = bool(result.pending_baselines) or lacks
    if result.latency_ns is not None:
        score = None if evaluation.awaits_baselines else evaluation.score
        evaluation.merit = score or -result.latency_ns
        _apply_spreads(evaluation, result, between)


def expected_baselines(evaluation: Evaluation) -> tuple[str, ...]:
    """Names of its task's baselines in its direction."""
    digest = evaluation.task_version.digest
    names = outlines([digest])[digest].baselines
    if evaluation.direction == Direction.FORWARD:
        return names
    return tuple(name for name in names if name in PYTORCH)


def lacks_some(evaluation: Evaluation, result: EvaluationResult) -> bool:
    """Whether a correct result whose mode measures no baselines lacks one that may be known."""
    if evaluation.mode not in UNMEASURED or evaluation.imported:
        return False
    known = [each.baselines for each in result.workloads if each.measurement and not each.hidden]
    missing = {
        name
        for name in expected_baselines(evaluation)
        if any(name not in baselines for baselines in known)
    }
    missing -= {key.rpartition(": ")[2] for key in result.environment.baseline_errors}
    if not missing:
        return False
    ended = BaselineMeasurement.objects.filter(
        version=evaluation.task_version_id,
        device=evaluation.device_id,
        direction=evaluation.direction,
        finished_at__isnull=False,
    ).order_by("-finished_at")
    for report in ended.values_list("report", flat=True)[:1]:
        told = report or {}
        times = told.get("baselines", {}).values()
        missing &= {name for each in times for name in each} | set(told.get("pending", ()))
    return bool(missing)


def _apply_spreads(evaluation: Evaluation, result: EvaluationResult, noise: float) -> None:
    """Put intervals of a correct result on the row, and what evaluations of a source differ by."""
    evaluation.noise = NINETY_FIVE * noise
    public = [w for w in result.workloads if not w.hidden and w.measurement is not None]
    evaluation.latency_spread = _spread([w.measurement] for w in public)
    if evaluation.speedup_best is not None:
        evaluation.speedup_spread = _spread([w.measurement, _best(w)] for w in public)
    if evaluation.score is not None:
        unlisted = [w for w in result.workloads if w.hidden and w.measurement is not None]
        halves = [_spread([w.measurement, _best(w)] for w in half) for half in (public, unlisted)]
        spread = math.hypot(*(half or 0 for half in halves)) / 2
        evaluation.own_spread = three_digits(with_noise(spread, noise))
        evaluation.score_spread = evaluation.own_spread
    for name in ("eager", "compiled"):
        if name in result.speedups:
            width = _spread([w.measurement, w.baselines.get(name)] for w in public)
            setattr(evaluation, f"{name}_spread", width)


def _spread(workloads: Iterable[list[Measurement | None]]) -> float | None:
    """Relative half width of the interval of a geometric mean over independent workloads.

    Each workload contributes a ratio of measurements; relative errors of ratios add in squares,
    and a mean over n logarithms divides their sum's root by n.
    """
    parts = [
        sum(m.relative_half_width**2 for m in measurements if m is not None)
        for measurements in workloads
    ]
    return math.sqrt(sum(parts)) / len(parts) if parts else None


def _best(workload: WorkloadResult) -> Measurement | None:
    return min(workload.baselines.values(), key=lambda m: m.time_ns, default=None)
