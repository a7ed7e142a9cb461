"""From a runner's result to the columns that lists and boards sort by."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationResult, Measurement, WorkloadResult
from gpu_runner.data.verdict import Verdict
from runs_app.errors import EventError
from runs_app.models import Evaluation
from tasks_app.disclosure import public_reason


def check(evaluation: Evaluation, result: EvaluationResult) -> None:
    """Refuse a result of something else, or one that has no time and needs one.

    Raises `EventError`.
    """
    facts = {
        "evaluation_id": (result.evaluation_id, str(evaluation.pk)),
        "attempt": (result.attempt, evaluation.attempt),
        "mode": (result.mode.value, evaluation.mode),
        "device": (result.device, evaluation.device_id),
        "task_digest": (result.task_digest, evaluation.task_version.digest),
        "solution_digest": (result.solution_digest, evaluation.submission.digest),
    }
    for field, (found, expected) in facts.items():
        if found != expected:
            raise EventError(f"result.{field} is {found!r}, expected {expected!r}")
    time_ns = result.latency_ns
    if (result.verdict is Verdict.CORRECT) != (time_ns is not None and 0 < time_ns < math.inf):
        raise EventError(f"result.latency_ns is {time_ns!r}, of the verdict {result.verdict}")


def apply(evaluation: Evaluation, result: EvaluationResult) -> None:
    """Put verdict, reason and numbers on the row; the caller saves it.

    The reason is the one for everybody; the stored result has the whole one for admins.
    """
    evaluation.verdict = result.verdict.value
    hidden = evaluation.task_version.hidden_names
    evaluation.reason = public_reason(codec.encode(result), hidden)
    evaluation.latency_ns = result.latency_ns
    evaluation.speedup_best = result.speedups.get("best")
    evaluation.speedup_eager = result.speedups.get("eager")
    evaluation.speedup_compiled = result.speedups.get("compiled")
    evaluation.hidden_speedup = result.hidden_speedups.get("eager")
    evaluation.floor_fraction = result.floor_fraction
    evaluation.score = result.score
    if result.latency_ns is not None:
        public = [w for w in result.workloads if not w.hidden and w.measurement is not None]
        evaluation.latency_spread = _spread([_kernel(w)] for w in public)
        if evaluation.speedup_best is not None:
            evaluation.speedup_spread = _spread([_kernel(w), _best(w)] for w in public)
        for name in ("eager", "compiled"):
            if name in result.speedups:
                width = _spread([_kernel(w), w.baselines.get(name)] for w in public)
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


def _kernel(workload: WorkloadResult) -> Measurement | None:
    return workload.measurement


def _best(workload: WorkloadResult) -> Measurement | None:
    return min(workload.baselines.values(), key=lambda m: m.time_ns, default=None)
