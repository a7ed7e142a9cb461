"""Why a result lacks a baseline, in words that tell nothing of hidden workloads."""

from __future__ import annotations

from gpu_runner.data.baselines import failure
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode
from runs_app.core.work.outcome import expected_baselines
from runs_app.models import BaselineMeasurement, Evaluation, Status

_SENT_NONE = "the site that measured it didn't report a time"
_NO_REASON = "it could not be measured"
_NEVER = {
    Mode.TEST: "test mode makes too few calls to measure it",
    Mode.QUICK: "only ranked mode measures it",
    Mode.PROFILE: "only ranked mode measures it",
}
_UNDER_WAY = {
    Status.RUNNING: "it is being measured separately, and will be added to this result",
    Status.QUEUED: "it will be measured separately when the device is free, and added to this"
    " result",
}


def awaited_baselines(evaluation: Evaluation, result: EvaluationResult | None) -> str:
    """Which baselines its result does not have yet, and when they will come; empty if none."""
    if result is None or not result.pending_baselines:
        return ""
    names = " and ".join(
        f"{name} on unlisted sizes" if name in result.speedups else name
        for name in result.pending_baselines
    )
    return f"{names}: {_when(evaluation, result.pending_baselines[0])}"


def missing_baselines(evaluation: Evaluation, result: EvaluationResult | None) -> dict[str, str]:
    """By name of each baseline without a speedup on listed sizes: why a correct result lacks it.

    The name is "best" if the task has no baselines at all.
    """
    if result is None or not evaluation.is_correct or evaluation.mode == Mode.AUDIT:
        return {}  # the ranked result that an audit judges has the score, and the reasons
    expected = expected_baselines(evaluation)
    if not expected:
        return {"best": "the task has no baselines"}
    return {
        name: f"{_where(result, name)}{_why(evaluation, result, name)}"
        for name in expected
        if name not in result.speedups
    }


def _where(result: EvaluationResult, name: str) -> str:
    """On how many listed workloads it is missing, if others have it."""
    timed = [each for each in result.workloads if each.measurement and not each.hidden]
    lacking = sum(name not in each.baselines for each in timed)
    return f"on {lacking} of {len(timed)} workloads, " if 0 < lacking < len(timed) else ""


def _why(evaluation: Evaluation, result: EvaluationResult, name: str) -> str:
    if evaluation.imported:
        return _SENT_NONE
    if name in result.pending_baselines:
        return _when(evaluation, name)
    if why := _NEVER.get(Mode(evaluation.mode)):
        return why
    public = [workload.name for workload in result.workloads if not workload.hidden]
    errors = result.environment.baseline_errors
    told = next((error for each in public if (error := errors.get(f"{each}: {name}"))), "")
    return failure(told) if told else _measured_apart(_job(evaluation), name, public)


def _when(evaluation: Evaluation, name: str) -> str:
    """When a baseline that a result waits for will come."""
    if evaluation.imported:
        return _SENT_NONE
    job = _job(evaluation)
    if job is None:
        return "it hasn't been measured yet"
    return _UNDER_WAY.get(Status(job.status)) or _measured_apart(job, name, ())


def _job(evaluation: Evaluation) -> BaselineMeasurement | None:
    return BaselineMeasurement.objects.filter(
        version=evaluation.task_version_id,
        device=evaluation.device_id,
        direction=evaluation.direction,
    ).first()


def _measured_apart(
    job: BaselineMeasurement | None, name: str, workloads: list[str] | tuple[str, ...]
) -> str:
    """What kept a job from measuring it. Its own text could hold a hidden size."""
    errors = (job.report or {}).get("errors", {}) if job else {}
    told = next((errors[key] for each in workloads if (key := f"{each}: {name}") in errors), "")
    told = told or (job.reason if job else "")
    return failure(told) if told else _NO_REASON
