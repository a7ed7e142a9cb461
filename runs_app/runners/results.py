"""End an evaluation with the result that its runner sends."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode
from runs_app.baselines import services as baselines
from runs_app.integrity import audits, quarantine
from runs_app.integrity.eligibility import leader
from runs_app.models import Evaluation, Result, Status
from runs_app.notices.happenings import place_changed
from runs_app.work import lifecycle, outcome
from tasks_app.disclosure import public_reason


def finish(evaluation: Evaluation, document: Any, now: datetime, seq: int) -> None:
    """Store the result and what follows from it, or try again if its host was the cause.

    Raises `DataError`, or `EventError` for the result of something else.
    """
    result = codec.decode(EvaluationResult, document, "result")
    outcome.check(evaluation, result)
    if result.retryable and evaluation.attempt < settings.MAX_ATTEMPTS:
        reason = public_reason(codec.encode(result), evaluation.task_version.hidden_names)
        lifecycle.try_again(evaluation, reason=reason, log=result.log, now=now, seq=seq)
        return
    before = _leader(evaluation)
    result = baselines.joined(evaluation, result, now)
    outcome.apply(evaluation, result)
    quarantine.hold(evaluation, result, now=now)
    Result.objects.create(evaluation=evaluation, document=codec.encode(result))
    summary = {
        "verdict": evaluation.verdict,
        "reason": evaluation.reason,
        "latency_ns": evaluation.latency_ns,
        "speedup": evaluation.speedup_best,
        "quarantine": evaluation.quarantine,
    }
    lifecycle.end(evaluation, Status.FINISHED, summary, now=now, seq=seq)
    if evaluation.mode == Mode.AUDIT:
        audits.settle(evaluation, result, now=now)
    if evaluation.mode in (Mode.AUDIT, Mode.RANKED):
        audits.recheck(evaluation, now=now)
        audits.consider(evaluation, now=now)
    if evaluation.mode == Mode.RANKED:
        place_changed(before, _leader(evaluation), now=now)


def _leader(evaluation: Evaluation) -> Evaluation | None:
    """Who leads the evaluation's board."""
    if evaluation.mode != Mode.RANKED:
        return None
    return leader(evaluation.task_version, evaluation.direction, evaluation.device_id)
