"""See to it that a task's baselines are known on a device, and join them to the results.

Those that are compiled for every workload are slow to make: a ranked result does not wait for them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from gpu_runner.data import codec
from gpu_runner.data.baselines import BaselineReport
from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.scores import with_baselines
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.baselines import agreement
from runs_app.core.baselines.selectors import baselines, measured_baselines
from runs_app.core.work import lifecycle, noise, outcome
from runs_app.core.work.plausible import check_report
from runs_app.models import (
    UNDER_WAY,
    BaselineMeasurement,
    Device,
    Evaluation,
    Result,
    Status,
    Submission,
)
from tasks_app.models import TaskVersion

log = logging.getLogger(__name__)

_STANDS = timedelta(days=1)  # for so long, a measurement that brought no time is not repeated
_MOST_OTHERS = 100  # chosen: results of other modes that get baselines later, in one transaction
_MOST_TRIES = 3  # within that time, of baselines that may have failed by chance


def ensure_baselines(
    *, version: TaskVersion, device: Device, direction: str, now: datetime
) -> BaselineMeasurement | None:
    """Have the baselines measured, ahead of audits; None if they are already known."""
    if baselines(version, device, direction).times_ns:
        return None
    return _measure(version, device, direction, now)


def joined(evaluation: Evaluation, result: EvaluationResult, now: datetime) -> EvaluationResult:
    """The result with the baselines that it waits for, or as it is: then they will be measured.

    Another host of the device may have measured them. Modes that measure none take over what is
    known, and have nothing measured. Call it in a transaction.
    """
    if result.verdict is not Verdict.CORRECT:
        return result
    if evaluation.mode in outcome.UNMEASURED and not evaluation.imported:
        return _with_known(evaluation, result)
    if not result.pending_baselines:
        return result
    version, device, direction = evaluation.task_version, evaluation.device, evaluation.direction
    known = _all_of(version, device, direction).filter(
        status=Status.FINISHED, finished_at__gt=now - _STANDS
    )
    newest = known.order_by("-finished_at").first()
    if newest is None:
        _measure(version, device, direction, now)
        return result
    if newest.report is None:  # the result's page gives the reason
        return result
    is_tried_again = _all_of(version, device, direction).filter(status__in=UNDER_WAY).exists()
    try:
        report = codec.decode_stored(BaselineReport, newest.report)
        between = noise.noise_between(device, Mode.RANKED)
        return _with(report, result, report.pending if is_tried_again else (), between)
    except DataError as error:  # which is no fault of this result
        log.warning("can't add baselines to the result of %s: %s", evaluation.pk, error)
        return result


@lifecycle.by_report
def finish(measurement: BaselineMeasurement, document: object, now: datetime) -> None:
    """End it with its runner's report, and give the baselines to all results that wait for them.

    Those that may have failed by chance are tried again. Raises `DataError` for the report of
    something else, and `Implausible`.
    """
    report = codec.decode(BaselineReport, document, "report")
    expected = measurement.version.data.digest()
    if report.task_digest != expected:
        raise DataError("report.task_digest", f"is {report.task_digest!r}, expected {expected!r}")
    check_report(measurement, report)
    version, device, direction = measurement.version, measurement.device, measurement.direction
    tries = 1 + _all_of(version, device, direction).filter(finished_at__gt=now - _STANDS).count()
    pending = report.pending if tries < _MOST_TRIES else ()
    measurement.report, measurement.reason = codec.encode(replace(report, pending=pending)), ""
    lifecycle.end(measurement, Status.FINISHED, {}, now=now)
    if pending:
        _measure(version, device, direction, now)
    waiting = list(_waiting(measurement))
    modes = {evaluation.mode for evaluation in waiting}
    between = {mode: noise.noise_between(measurement.device, mode) for mode in modes}
    for key in [evaluation.pk for evaluation in waiting]:
        evaluation = lifecycle.lock(Evaluation, key)  # an earlier one may have changed it
        try:
            _join(evaluation, report, pending, between[evaluation.mode], now)
        except DataError as error:  # of another version of ours; it keeps what it has
            log.warning("can't add baselines to the result of %s: %s", key, error)
    noise.pool(*waiting)


def _measure(
    version: TaskVersion, device: Device, direction: str, now: datetime
) -> BaselineMeasurement:
    TaskVersion.objects.select_for_update(no_key=True).get(pk=version.pk)  # two requests take turns
    for under_way in _all_of(version, device, direction).filter(status__in=UNDER_WAY):
        return under_way
    measurement = BaselineMeasurement(
        version=version, device=device, direction=direction, created_at=now, queued_at=now
    )
    lifecycle.queue(measurement, now=now)
    return measurement


def _all_of(version: TaskVersion, device: Device, direction: str) -> QuerySet[BaselineMeasurement]:
    return BaselineMeasurement.objects.filter(version=version, device=device, direction=direction)


def _waiting(measurement: BaselineMeasurement) -> QuerySet[Evaluation]:
    """The locked evaluations whose results wait for baselines.

    These are all ranked ones and the newest of others; a run's search is left as it was.
    """
    rows = Evaluation.objects.filter(
        task_version=measurement.version_id,
        device=measurement.device_id,
        direction=measurement.direction,
        verdict=Verdict.CORRECT.value,
        awaits_baselines=True,
    )
    others = rows.exclude(mode=Mode.RANKED.value).exclude(submission__origin=Submission.Origin.RUN)
    newest = others.order_by("-finished_at").values("pk")[:_MOST_OTHERS]
    wanted = rows.filter(Q(mode=Mode.RANKED.value) | Q(pk__in=newest))
    return lifecycle.lockable(Evaluation).filter(pk__in=wanted.values("pk")).order_by("pk")


def _join(
    evaluation: Evaluation,
    report: BaselineReport,
    pending: Collection[str],
    between: float,
    now: datetime,
) -> None:
    if not evaluation.awaits_baselines:
        return
    stored = Result.objects.get(evaluation=evaluation)
    result = codec.decode_stored(EvaluationResult, stored.document)
    result = _with(report, result, pending, between)
    result = agreement.agreed(evaluation, result, between, now)
    agreement.change(evaluation, stored, result, between, now)


def _with_known(evaluation: Evaluation, result: EvaluationResult) -> EvaluationResult:
    """With what is known of the baselines that it lacks, by workload."""
    of = (evaluation.task_version, evaluation.device, evaluation.direction)
    try:
        anchor = result.environment.anchor_ns
        known = measured_baselines(*of, anchor_ns=anchor.mean if anchor else None)
        missing = {
            each.name: {
                name: time
                for name, time in known.get(each.name, {}).items()
                if name not in each.baselines
            }
            for each in result.workloads
            if each.measurement
        }
        if not any(missing.values()):
            return result
        return with_baselines(result, missing, pending=result.pending_baselines)
    except DataError as error:  # which is no fault of this result
        log.warning("can't add baselines to the result of %s: %s", evaluation.pk, error)
        return result


def _with(
    report: BaselineReport, result: EvaluationResult, pending: Collection[str], between: float
) -> EvaluationResult:
    anchor = result.environment.anchor_ns
    found = report.at(anchor.mean if anchor else None)
    return with_baselines(result, agreement.news(found, result, between), pending=pending)
