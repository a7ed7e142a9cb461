"""See to it that a task's baselines are known on a device, and join them to the results.

Those that are compiled for every workload are slow to make: a ranked result does not wait for them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from gpu_runner.data import codec
from gpu_runner.data.baselines import BaselineReport, anchor_of
from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.scores import with_baselines
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.baselines.selectors import baselines
from runs_app.models import (
    UNDER_WAY,
    BaselineMeasurement,
    Device,
    Evaluation,
    Result,
    Status,
)
from runs_app.work import journal, lifecycle, outcome
from tasks_app.models import TaskVersion

log = logging.getLogger(__name__)

_STANDS = timedelta(days=1)  # for so long, a measurement that brought no time is not repeated


def ensure_baselines(
    *, version: TaskVersion, device: Device, direction: str, now: datetime
) -> BaselineMeasurement | None:
    """Have them measured, behind everything else, unless they are known; None if they are."""
    if baselines(version, device, direction).times_ns:
        return None
    return _measure(version, device, direction, now)


def joined(evaluation: Evaluation, result: EvaluationResult, now: datetime) -> EvaluationResult:
    """The result with the baselines that it waits for, or as it is: then they will be measured.

    Another host of the device may have measured them. Call it in a transaction.
    """
    if not result.pending_baselines or result.verdict is not Verdict.CORRECT:
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
    return _with(codec.decode_stored(BaselineReport, newest.report), result)


def finish(measurement: BaselineMeasurement, document: Any, now: datetime) -> None:
    """End it with its runner's report, and give the baselines to all results that wait for them.

    Raises `DataError` for the report of something else.
    """
    report = codec.decode(BaselineReport, document, "report")
    expected = measurement.version.data.digest()
    if report.task_digest != expected:
        raise DataError("report.task_digest", f"is {report.task_digest!r}, expected {expected!r}")
    measurement.report, measurement.reason = document, ""
    lifecycle.end(measurement, Status.FINISHED, {}, now=now)
    for evaluation in _waiting(measurement):
        try:
            _join(evaluation, report, now)
        except DataError as error:  # of another version of ours; it keeps what it has
            log.warning("baselines do not join the result of %s: %s", evaluation.pk, error)


def _measure(
    version: TaskVersion, device: Device, direction: str, now: datetime
) -> BaselineMeasurement:
    TaskVersion.objects.select_for_update(no_key=True).get(pk=version.pk)  # two requests take turns
    for under_way in _all_of(version, device, direction).filter(status__in=UNDER_WAY):
        return under_way
    measurement = BaselineMeasurement.objects.create(
        version=version, device=device, direction=direction, created_at=now, queued_at=now
    )
    lifecycle.queue(measurement, now=now)
    return measurement


def _all_of(version: TaskVersion, device: Device, direction: str) -> QuerySet[BaselineMeasurement]:
    return BaselineMeasurement.objects.filter(version=version, device=device, direction=direction)


def _waiting(measurement: BaselineMeasurement) -> Iterable[Evaluation]:
    """The locked evaluations whose results wait for baselines: compiled ones, so far."""
    rows = Evaluation.objects.select_for_update(of=("self",)).filter(
        task_version=measurement.version_id,
        device=measurement.device_id,
        direction=measurement.direction,
        mode=Mode.RANKED.value,
        verdict=Verdict.CORRECT.value,
        speedup_compiled__isnull=True,
    )
    return rows.select_related("task_version", "submission")


def _join(evaluation: Evaluation, report: BaselineReport, now: datetime) -> None:
    stored = Result.objects.get(evaluation=evaluation)
    if not stored.document.get("pending_baselines"):
        return
    result = _with(report, codec.decode_stored(EvaluationResult, stored.document))
    stored.document = codec.encode(result)
    stored.save(update_fields=["document"])
    outcome.apply(evaluation, result)
    evaluation.save()
    journal.write(evaluation, "baselines", {"speedup": evaluation.speedup_best}, now=now)


def _with(report: BaselineReport, result: EvaluationResult) -> EvaluationResult:
    return with_baselines(result, report.at(anchor_of(result.environment)))
