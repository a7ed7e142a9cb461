"""End an evaluation with the result that its runner sends, and see to what follows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.conf import settings
from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.baselines import agreement
from runs_app.core.baselines import services as baselines
from runs_app.core.hooks import evaluation_ended
from runs_app.core.integrity import audits, quarantine
from runs_app.core.messaging import queues
from runs_app.core.work import audit_state, lifecycle, noise, outcome, replaced
from runs_app.core.work.estimate import learn
from runs_app.core.work.plausible import check_plausible
from runs_app.models import BaselineMeasurement, Evaluation, Result, Status
from runs_app.models.runner_job import LONGEST_TEXT
from tasks_app.disclosure import public_reason

_STANDING = (Mode.AUDIT, Mode.RANKED)  # what may change who leads a board


def finish(evaluation: Evaluation, payload: Mapping[str, object], now: datetime, seq: int) -> None:
    """Store the result and what follows from it, or try again if its host was the cause.

    Raises `DataError`, or `Implausible`.
    """
    result = codec.decode(EvaluationResult, payload.get("result"), "result")
    check_plausible(evaluation, result, now)
    if result.retryable and evaluation.attempt < settings.MAX_ATTEMPTS:
        reason = public_reason(result, evaluation.task_version.hidden_names)[:LONGEST_TEXT]
        lifecycle.retry_after_result(evaluation, reason=reason, log=result.log, now=now, seq=seq)
        return
    boards = [audits.board_of(evaluation)] if evaluation.mode in _STANDING else []
    with audits.watched(boards, now=now):
        _store(evaluation, result, now, seq)


def _store(evaluation: Evaluation, result: EvaluationResult, now: datetime, seq: int) -> None:
    """End the evaluation with its result, and see to its board."""
    is_timed = result.verdict is Verdict.CORRECT
    between = noise.noise_between(evaluation.device, evaluation.mode) if is_timed else 0.0
    result = agreement.agreed(evaluation, baselines.joined(evaluation, result, now), between, now)
    outcome.apply(evaluation, result, between)
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
    audits.recheck(evaluation, now=now)


def finish_baselines(
    measurement: BaselineMeasurement, payload: Mapping[str, object], now: datetime, seq: int
) -> None:
    """Store the baselines, and see to who leads the board that they change."""
    board = (measurement.version, measurement.direction, measurement.device_id)
    with audits.watched([board], now=now):
        baselines.finish(measurement, payload, now, seq)


def ended(evaluation: Evaluation, now: datetime) -> None:
    """See to what follows from any end of an evaluation: on its board, and for who waits for it."""
    if evaluation.mode == Mode.RANKED:
        audit_state.inherit(evaluation)
        replaced.settle([evaluation.submission_id])
    if evaluation.mode == Mode.RANKED or (evaluation.is_correct and evaluation.mode != Mode.AUDIT):
        noise.pool(evaluation)  # before anybody is told of the score
    if evaluation.mode == Mode.AUDIT and evaluation.verdict in ("", Verdict.SYSTEM_ERROR):
        reason = evaluation.reason or "it was canceled"
        audit_state.inconclusive(audit_state.of(evaluation), reason, now=now)
    run_id = evaluation.submission.run_id
    if run_id is not None:
        transaction.on_commit(lambda: queues.enqueue_advance(run_id))
    device, mode = evaluation.device_id, evaluation.mode
    transaction.on_commit(lambda: learn(device, mode), robust=True)
    evaluation_ended.send(sender=Evaluation, evaluation=evaluation)
