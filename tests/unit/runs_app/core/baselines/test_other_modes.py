"""A result of a mode that measures no baselines is provisional until all of them are known."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import Mode
from kbench_client.details import summary
from runs_app.core.baselines.missing import missing_baselines
from runs_app.core.work import lifecycle
from runs_app.core.work.result_state import compared_with, is_sure
from runs_app.models import BaselineMeasurement, Evaluation
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

EAGER = {"eager": make.make_measurement(2000.0)}
ONLY_EAGER: dict[str, Any] = {
    "workloads": (
        make.make_workload_result(baselines=EAGER, speedups={"eager": 2.0, "best": 2.0}),
    ),
    "speedups": {"eager": 2.0, "best": 2.0},
    "unlisted_speedups": {},
}
NONE: dict[str, Any] = {
    "workloads": (make.make_workload_result(baselines={}, speedups={}),),
    "speedups": {},
    "unlisted_speedups": {},
}


def told(evaluation: Evaluation) -> dict[str, Any]:
    answer = Client().get(f"/api/v1/submissions/{evaluation.submission_id}").json()
    return next(each for each in answer["evaluations"] if each["id"] == str(evaluation.pk))


def page(evaluation: Evaluation) -> str:
    return Client().get(evaluation.get_absolute_url()).content.decode()


def again(evaluation: Evaluation, mode: Mode, result: dict[str, Any]) -> Evaluation:
    """Another evaluation of the same submission."""
    of = {"submission": evaluation.submission, "device": evaluation.device}
    other = lifecycle.evaluate(**of, mode=mode, now=make.NOW)
    make.finish(other, **result)
    other.refresh_from_db()
    return other


@pytest.mark.parametrize("mode", [Mode.TEST, Mode.QUICK, Mode.PROFILE, Mode.AUDIT])
def test_a_speedup_over_eager_alone_is_provisional_in_any_mode(mode: Mode) -> None:
    result = {**ONLY_EAGER, "pending_baselines": ("compiled",)}
    ranked = make.make_finished_evaluation(mode="ranked", result=result)
    evaluation = again(ranked, mode, ONLY_EAGER)
    assert (is_sure(evaluation), compared_with(evaluation)) == (False, "eager")
    shown = [page(evaluation), Client().get("/").content.decode()]
    for text in shown:
        assert "faster than" not in text
        assert 'class="speedup faster"' not in text
    assert "compared with the eager baseline" in shown[1]
    only = "" if mode is Mode.AUDIT else " only"
    assert f'</span> <span class="sub">vs eager{only}</span>' in shown[1]
    if mode is Mode.AUDIT:
        assert "The ranked result has the score" in shown[0]
        assert "compiled" not in missing_baselines(evaluation, evaluation.result.data)
    else:
        assert "2.00× the speed of the baselines known so far (eager)" in shown[0]
        assert "2.00× over eager only" in summary(told(evaluation))
    assert told(evaluation)["compared_with"] == ("" if mode is Mode.AUDIT else "eager")


def test_it_takes_up_its_baselines_when_they_come() -> None:
    quick = make.make_finished_evaluation(mode="quick", result=ONLY_EAGER)
    pending = {**ONLY_EAGER, "pending_baselines": ("compiled",)}
    make.make_finished_evaluation(mode="ranked", task_version=quick.task_version, result=pending)
    measurement = BaselineMeasurement.objects.get()
    report = make.baseline_report(measurement)
    assert make.send(measurement, EventKind.FINISHED, {"report": report}, seq=9)
    quick.refresh_from_db()
    assert (quick.speedup_best, quick.speedup_compiled, is_sure(quick)) == (1.5, 1.5, True)
    later = make.make_finished_evaluation(
        mode="test", task_version=quick.task_version, result=ONLY_EAGER
    )
    assert (later.speedup_best, is_sure(later)) == (1.5, True)


def test_it_has_what_the_ranked_result_knows() -> None:
    ranked = make.make_finished_evaluation(mode="ranked")
    profile = again(ranked, Mode.PROFILE, NONE)
    assert profile.speedup_eager == ranked.speedup_eager
    assert missing_baselines(profile, profile.result.data) == {}
    assert "no baseline is known" not in page(profile)


def test_what_is_known_is_carried_to_the_devices_speed_of_then() -> None:
    ranked = make.make_finished_evaluation(
        mode="ranked", result={"environment": {"anchor_ns": {"before": 1000.0, "after": 1000.0}}}
    )
    slower = {**NONE, "environment": {"anchor_ns": {"before": 1100.0, "after": 1100.0}}}
    profile = again(ranked, Mode.PROFILE, slower)
    assert ranked.speedup_eager is not None
    assert profile.speedup_eager == pytest.approx(1.1 * ranked.speedup_eager)


def test_one_that_cannot_be_measured_is_not_waited_for() -> None:
    version = make.make_task_version()
    pending = {**ONLY_EAGER, "pending_baselines": ("compiled",)}
    make.make_finished_evaluation(mode="ranked", task_version=version, result=pending)
    failed = BaselineMeasurement.objects.get()
    make.send(failed, EventKind.FINISHED, {"reason": "no compiler here"}, seq=2)
    quick = make.make_finished_evaluation(mode="quick", task_version=version, result=ONLY_EAGER)
    assert (is_sure(quick), compared_with(quick)) == (True, "best")
