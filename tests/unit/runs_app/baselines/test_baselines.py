"""Baselines that are measured apart: asked for once, and joined to every result that waits."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode
from runs_app.baselines.selectors import awaited_baselines
from runs_app.messaging import queues
from runs_app.models import BaselineMeasurement, Evaluation, Result, Status
from runs_app.work import lifecycle
from tests import factories as make
from tests.unit.queued import Jobs

pytestmark = pytest.mark.django_db

EAGER = {"eager": make.make_measurement(2000.0)}
PENDING: dict[str, Any] = {
    "workloads": (
        make.make_workload_result(baselines=EAGER, speedups={"eager": 2.0, "best": 2.0}),
    ),
    "speedups": {"eager": 2.0, "best": 2.0},
    "score": 2.0,
    "pending_baselines": ("compiled",),
}


def ranked(**columns: Any) -> Evaluation:
    """A correct ranked evaluation whose compiled baselines were not known."""
    evaluation = make.make_evaluation(mode=Mode.RANKED.value, **columns)
    make.finish(evaluation, **PENDING)
    evaluation.refresh_from_db()
    return evaluation


def again(evaluation: Evaluation, **changes: Any) -> Evaluation:
    """Another one of the same submission."""
    other = lifecycle.evaluate(
        submission=evaluation.submission,
        device=evaluation.device,
        mode=Mode.RANKED,
        now=make.NOW,
    )
    make.finish(other, **{**PENDING, **changes})
    other.refresh_from_db()
    return other


def report(measurement: BaselineMeasurement, **changes: Any) -> None:
    payload = {"report": make.baseline_report(measurement, **changes)}
    assert make.send(measurement, EventKind.FINISHED, payload, seq=9)
    measurement.refresh_from_db()


def awaited(evaluation: Evaluation) -> str:
    document = Result.objects.get(evaluation=evaluation).document
    return awaited_baselines(evaluation, document)


def test_they_are_asked_for_once_and_behind_everything(
    jobs: Jobs, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        evaluation = ranked()
        again(evaluation)
    measurement = BaselineMeasurement.objects.get()
    assert jobs.enqueued.count(f"baselines-{measurement.pk}-1") == 1
    urgency, (function, request) = queues.urgency(measurement), queues.order(measurement)
    assert (urgency, function) == (Urgency.BASELINES, queues.BASELINES_FUNCTION)
    assert codec.encode(request)["task"] == evaluation.task_version.document
    assert "when the device is free" in awaited(evaluation)


def test_results_that_wait_get_them(jobs: Jobs) -> None:
    evaluation = ranked()
    second = again(evaluation)
    assert evaluation.speedup_best == 2.0
    measurement = BaselineMeasurement.objects.get()
    make.send(measurement, EventKind.STARTED, {"runner": "host-1"}, seq=1)
    assert "being measured apart" in awaited(evaluation)
    report(measurement)
    assert measurement.status == Status.FINISHED
    for row in (evaluation, second):
        row.refresh_from_db()
        assert (row.speedup_best, row.speedup_compiled, row.score) == (1.5, 1.5, 1.5)
        assert awaited(row) == ""
        assert row.events.order_by("position").last().kind == "baselines"


def test_a_later_result_has_them_at_once(jobs: Jobs) -> None:
    evaluation = ranked()
    report(BaselineMeasurement.objects.get())
    later = again(evaluation)
    assert (later.speedup_compiled, awaited(later)) == (1.5, "")
    assert BaselineMeasurement.objects.count() == 1


def test_the_device_was_at_another_speed_then(jobs: Jobs) -> None:
    evaluation = ranked()
    report(BaselineMeasurement.objects.get(), anchor_ns=1000.0)
    later = again(evaluation, environment={"anchor_ns": {"before": 1100.0, "after": 1100.0}})
    assert later.speedup_compiled == pytest.approx(1.5 * 1.1)


def test_what_cannot_be_measured_is_said_and_not_tried_again_at_once(jobs: Jobs) -> None:
    evaluation = ranked()
    measurement = BaselineMeasurement.objects.get()
    make.send(measurement, EventKind.FINISHED, {"reason": "no compiler here"}, seq=2)
    assert awaited(evaluation) == "compiled: could not be measured: no compiler here"
    again(evaluation)
    assert BaselineMeasurement.objects.count() == 1


def test_one_that_has_failed_in_the_report_is_not_awaited(jobs: Jobs) -> None:
    evaluation = ranked()
    report(BaselineMeasurement.objects.get(), baselines={"n256": EAGER}, errors={"n256": "no"})
    evaluation.refresh_from_db()
    assert (awaited(evaluation), evaluation.speedup_compiled) == ("", None)
    assert evaluation.speedup_best == 2.0


@pytest.mark.parametrize("changes", [{"task_digest": "another"}, {"baselines": 3}])
def test_a_report_of_something_else_is_refused(jobs: Jobs, changes: dict[str, Any]) -> None:
    evaluation = ranked()
    measurement = BaselineMeasurement.objects.get()
    document = {**make.baseline_report(measurement), **changes}
    make.send(measurement, EventKind.FINISHED, {"report": document}, seq=2)
    measurement.refresh_from_db()
    assert measurement.report is None
    assert "cannot be used" in measurement.reason
    assert "could not be measured" in awaited(evaluation)
