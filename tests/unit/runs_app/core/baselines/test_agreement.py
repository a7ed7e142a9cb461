"""Rows of a board that one runner measured rest on the same times of its baselines."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import Mode
from runs_app.core.baselines import agreement
from runs_app.models import BaselineMeasurement, Evaluation
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import MEMCHECK, end_audit

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs", "believed")]

KERNEL_NS = 1000.0


def with_eager(time_ns: float) -> dict[str, Any]:
    """A result whose kernel takes `KERNEL_NS`, beside this time of the eager baseline."""
    speedup = time_ns / KERNEL_NS
    speedups = {"eager": speedup, "best": speedup}
    baselines = {"eager": make.make_measurement(time_ns)}
    listed = make.make_workload_result(baselines=baselines, speedups=speedups)
    unlisted = make.make_workload_result(
        name=make.HIDDEN_WORKLOAD, hidden=True, baselines=baselines, speedups=speedups
    )
    return {
        "workloads": (listed, unlisted),
        "speedups": speedups,
        "unlisted_speedups": speedups,
        "p_score": speedup,
    }


def ranked(eager_ns: float, like: Evaluation | None = None) -> Evaluation:
    """A ranked evaluation of a source of its own, on the board of another one."""
    version = {} if like is None else {"task_version": like.task_version}
    evaluation = make.make_finished_evaluation(
        mode=Mode.RANKED.value, result=with_eager(eager_ns), **version
    )
    return fresh(evaluation)


def eager_ns(evaluation: Evaluation) -> set[float]:
    return {w.baselines["eager"].time_ns for w in evaluation.result.data.workloads}


def fresh(evaluation: Evaluation) -> Evaluation:
    return Evaluation.objects.get(pk=evaluation.pk)


def test_a_row_whose_baseline_had_a_bad_moment_gets_the_time_that_others_have() -> None:
    first = ranked(1500.0)
    flattered = ranked(3000.0, first)
    assert (flattered.score, eager_ns(flattered)) == (pytest.approx(1.5), {1500.0})
    assert fresh(first).score == pytest.approx(1.5)


def test_rows_whose_baseline_had_a_bad_moment_get_the_time_of_a_new_one() -> None:
    flattered = [ranked(3000.0)]
    flattered.append(ranked(3000.0, flattered[0]))
    assert [each.score for each in flattered] == [pytest.approx(3.0)] * 2
    ranked(1500.0, flattered[0])
    for each in map(fresh, flattered):
        assert (each.score, eager_ns(each)) == (pytest.approx(1.5), {1500.0})


def test_two_results_that_wait_take_over_a_faster_baseline_of_one_report() -> None:
    result = {**with_eager(3000.0), "pending_baselines": ("compiled",)}
    first = make.make_finished_evaluation(mode=Mode.RANKED.value, result=result)
    second = make.make_finished_evaluation(
        mode=Mode.RANKED.value, result=result, task_version=first.task_version
    )
    measurement = BaselineMeasurement.objects.get()
    times = {"eager": make.make_measurement(1500.0), "compiled": make.make_measurement(2000.0)}
    payload = {"report": make.baseline_report(measurement, baselines={"n256": times})}
    assert make.send(measurement, EventKind.FINISHED, payload, seq=9)
    for each in map(fresh, (first, second)):
        assert (each.speedup_best, each.awaits_baselines) == (pytest.approx(1.5), False)


def test_a_report_replaces_no_faster_time_of_an_audit() -> None:
    result = {**with_eager(3000.0), "pending_baselines": ("compiled",)}
    waits = make.make_finished_evaluation(mode=Mode.RANKED.value, result=result)
    end_audit(waits, MEMCHECK, **with_eager(1500.0))
    measurement = BaselineMeasurement.objects.get()
    times = {"eager": make.make_measurement(3000.0), "compiled": make.make_measurement(4000.0)}
    payload = {"report": make.baseline_report(measurement, baselines={"n256": times})}
    assert make.send(measurement, EventKind.FINISHED, payload, seq=9)
    done = fresh(waits)
    assert (done.speedup_best, done.awaits_baselines) == (pytest.approx(1.5), False)


def test_times_within_noise_are_left_alone() -> None:
    first = ranked(2000.0)
    second = ranked(2060.0, first)
    assert (eager_ns(first), eager_ns(second)) == ({2000.0}, {2060.0})


def test_an_audit_speaks_for_all_rows_of_its_runner() -> None:
    first = ranked(3000.0)
    second = ranked(3000.0, first)
    end_audit(first, MEMCHECK, **with_eager(1500.0))
    assert [fresh(each).score for each in (first, second)] == [pytest.approx(1.5)] * 2


def test_a_runner_of_another_token_changes_none_of_its_rows() -> None:
    """Somebody may have taken it over, and say that baselines take no time."""
    mine, theirs = ranked(2500.0), make.make_runner(token=make.make_runner_token(name="other"))
    other = ranked(2500.0, mine)
    Evaluation.objects.filter(pk=other.pk).update(runner=theirs)
    other = fresh(other)
    result = make.make_result(other, **with_eager(1500.0))
    assert agreement.agreed(other, result, 0.0, make.NOW) == result
    assert eager_ns(fresh(mine)) == {2500.0}
    assert agreement.mend(other, fresh(other), result, make.NOW) == ["eager"]
    assert (eager_ns(fresh(other)), eager_ns(fresh(mine))) == ({1500.0}, {2500.0})
