"""Baselines that are measured apart: asked for once, and joined to every result that waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from gpu_runner.data.baselines import BaselineRequest
from gpu_runner.data.event import EventKind
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode
from runs_app.core.baselines.missing import awaited_baselines
from runs_app.core.errors import Implausible
from runs_app.core.messaging import orders
from runs_app.core.work import lifecycle
from runs_app.models import UNDER_WAY, BaselineMeasurement, Evaluation, Result, Status
from tests import factories as make
from tests.unit.queued import Jobs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

EAGER = {"eager": make.make_measurement(2000.0)}
PENDING: dict[str, Any] = {
    "workloads": (
        make.make_workload_result(baselines=EAGER, speedups={"eager": 2.0, "best": 2.0}),
    ),
    "speedups": {"eager": 2.0, "best": 2.0},
    "p_score": 2.0,
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
    fields = {"submission": evaluation.submission, "device": evaluation.device}
    other = lifecycle.evaluate(**fields, mode=Mode.RANKED, now=make.NOW)
    make.finish(other, **{**PENDING, **changes})
    other.refresh_from_db()
    return other


def report(measurement: BaselineMeasurement, **changes: Any) -> None:
    payload = {"report": make.baseline_report(measurement, **changes)}
    assert make.send(measurement, EventKind.FINISHED, payload, seq=9)
    measurement.refresh_from_db()


def awaited(evaluation: Evaluation) -> str:
    return awaited_baselines(evaluation, Result.objects.get(evaluation=evaluation).data)


def test_they_are_asked_for_once_and_behind_everything(
    jobs: Jobs, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        evaluation = ranked()
        again(evaluation)
    measurement = BaselineMeasurement.objects.get()
    assert jobs.enqueued.count(f"baselines-{measurement.pk}-1") == 1
    urgency, order = measurement.urgency, orders.order_of(measurement)
    assert (urgency, order.kind) == (Urgency.BASELINES, BaselineRequest.KIND)
    assert order.request["task"] == evaluation.task_version.document
    assert "when the device is free" in awaited(evaluation)
    result = replace(evaluation.result.data, speedups={"compiled": 1.5})
    assert awaited_baselines(evaluation, result).startswith(
        "compiled on unlisted sizes: it will be"
    )


def test_results_that_wait_get_them() -> None:
    evaluation = ranked()
    second = again(evaluation)
    assert evaluation.speedup_best == 2.0
    measurement = BaselineMeasurement.objects.get()
    make.send(measurement, EventKind.STARTED, {"runner": "host-1"}, seq=1)
    assert "being measured separately" in awaited(evaluation)
    report(measurement)
    assert measurement.status == Status.FINISHED
    for row in (evaluation, second):
        row.refresh_from_db()
        assert (row.speedup_best, row.speedup_compiled, row.p_score) == (1.5, 1.5, 1.5)
        assert awaited(row) == ""
        assert row.events.order_by("position").last().kind == "baselines"


def test_a_provisional_result_says_when_its_baselines_come(client: Client) -> None:
    first = ranked()
    told = BaselineMeasurement.objects.get()
    make.send(told, EventKind.STARTED, {"runner": "host-1"}, seq=1)
    report(told)
    BaselineMeasurement.objects.update(started_at=make.NOW, finished_at=make.later(40.0))
    make.beat(now=timezone.now())
    waits = ranked(source=f"{make.SOURCE}//", task_version=make.make_task_version(title="2"))
    expected = "still ranking; expect its baselines in about 40 s"
    address = f"/submissions/{waits.submission_id}"
    for path in (f"/api/v1{address}", f"/api/v1{address}/status", f"{address}/"):
        shown = client.get(path).content.decode()
        assert expected[1:] in shown, path
    assert " data-waits" in shown
    measured = BaselineMeasurement.objects.get(version=waits.task_version)
    make.send(measured, EventKind.STARTED, {"runner": "host-1"}, seq=1)
    BaselineMeasurement.objects.filter(pk=measured.pk).update(started_at=make.NOW)  # long ago
    told = client.get(f"/api/v1/submissions/{waits.submission_id}/status").json()
    overdue = "its baselines any moment now (it takes longer than usual)"
    assert told["waiting_reason"] == f"still ranking; expect {overdue}"
    status = f"/api/v1/submissions/{first.submission_id}/status"
    assert client.get(status).json()["waiting_reason"].endswith("waiting for its audit")
    make.pass_audits()
    assert client.get(status).json()["waiting_reason"] == ""


def test_a_later_result_has_them_at_once_at_its_devices_speed() -> None:
    evaluation = ranked()
    report(BaselineMeasurement.objects.get(), anchor_ns=1000.0)
    later = again(evaluation, environment={"anchor_ns": {"before": 1100.0, "after": 1100.0}})
    assert later.speedup_compiled == pytest.approx(1.5 * 1.1)
    later = again(evaluation)
    assert (later.speedup_compiled, awaited(later)) == (1.5, "")
    measurement = BaselineMeasurement.objects.get()
    useless = make.baseline_report(measurement, anchor_ns=-1.0)  # keeps no result back
    BaselineMeasurement.objects.update(report=useless)
    later = again(evaluation, environment={"anchor_ns": {"before": 1100.0, "after": 1100.0}})
    assert (later.verdict, later.speedup_best) == ("CORRECT", 2.0)


def test_what_cannot_be_measured_is_said_and_not_tried_again_at_once() -> None:
    evaluation = ranked()
    measurement = BaselineMeasurement.objects.get()
    make.send(measurement, EventKind.FINISHED, {"reason": "no compiler here"}, seq=2)
    assert awaited(evaluation) == "compiled: this runner has no working torch.compile"
    again(evaluation)
    assert BaselineMeasurement.objects.count() == 1
    failed = ranked(source=f"{make.SOURCE}//", task_version=make.make_task_version(title="2"))
    waits = BaselineMeasurement.objects.get(status__in=UNDER_WAY)
    report(waits, baselines={"n256": EAGER}, errors={"n256": "no"})
    failed.refresh_from_db()
    assert (awaited(failed), failed.speedup_compiled, failed.speedup_best) == ("", None, 2.0)


def test_one_that_may_have_failed_by_chance_is_tried_three_times() -> None:
    evaluation = ranked()
    bad_moment: dict[str, Any] = {
        "baselines": {"n256": EAGER}, "errors": {"n256": "killed"}, "pending": ("compiled",),
    }  # fmt: skip
    for tries in (1, 2, 3):
        assert BaselineMeasurement.objects.count() == tries
        evaluation.refresh_from_db()
        assert evaluation.awaits_baselines
        assert again(evaluation).awaits_baselines
        report(BaselineMeasurement.objects.get(status__in=UNDER_WAY), **bad_moment)
    for row in Evaluation.objects.all():
        assert not row.awaits_baselines, "it cannot be measured here"
    assert not again(evaluation).awaits_baselines
    assert BaselineMeasurement.objects.count() == 3


def test_a_second_try_brings_what_the_first_did_not() -> None:
    evaluation = ranked()
    report(BaselineMeasurement.objects.get(), baselines={"n256": EAGER}, pending=("compiled",))
    report(BaselineMeasurement.objects.get(status__in=UNDER_WAY))
    evaluation.refresh_from_db()
    assert (evaluation.speedup_compiled, evaluation.awaits_baselines) == (1.5, False)


@pytest.mark.parametrize("changes", [{"task_digest": "another"}, {"baselines": 3}])
def test_a_report_of_something_else_is_refused(changes: dict[str, Any]) -> None:
    evaluation = ranked()
    measurement = BaselineMeasurement.objects.get()
    document = {**make.baseline_report(measurement), **changes}
    make.send(measurement, EventKind.FINISHED, {"report": document}, seq=2)
    measurement.refresh_from_db()
    assert measurement.report is None
    assert "cannot be used" in measurement.reason
    assert "failed on this runner" in awaited(evaluation)


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ({"anchor_ns": -1.0}, "report.anchor_ns is -1.0"),
        ({"anchor_ns": 1e-320}, "report.anchor_ns is 1e-320"),
        ({"anchor_ns": float("inf")}, "report.anchor_ns is inf"),
        ({"baselines": {"n512": EAGER}}, "'n512', which the task doesn't time"),
        ({"baselines": {"n256": {"slow": EAGER["eager"]}}}, "n256 has a baseline 'slow'"),
        (
            {"baselines": {"n256": {"eager": make.make_measurement(1e300)}}},
            "n256 has a baseline 'eager' with calls that take longer than a job may",
        ),
    ],
)
def test_a_report_that_cannot_be_joins_no_result(lie: dict[str, Any], words: str) -> None:
    evaluation = ranked()
    measurement = BaselineMeasurement.objects.get()
    with pytest.raises(Implausible) as refusal:
        report(measurement, **lie)
    assert words in str(refusal.value)
    measurement.refresh_from_db()
    assert (measurement.status, measurement.report) == (Status.RUNNING, None)
    evaluation.refresh_from_db()
    assert evaluation.speedup_best == 2.0
