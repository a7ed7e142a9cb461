"""Times by workload on a candidate's page: of the evaluation of its time, and like with like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data import codec
from gpu_runner.data.evaluation import WorkloadResult
from gpu_runner.data.verdict import Mode
from runs_app.models import Candidate, Run
from runs_app.optimiser.evolve.feedback import Feedback
from runs_app.optimiser.workload_times import WorkloadTimes, workload_times
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import World
from tests.unit.runs_app.optimiser.test_ranking import Start, end, searched

pytestmark = pytest.mark.django_db


def timed(time_ns: float, **overrides: Any) -> tuple[WorkloadResult, ...]:
    """A public workload and a hidden one, each with that time."""
    measurement = make.make_measurement(time_ns)
    public = replace(make.make_workload_result(), measurement=measurement, **overrides)
    return public, replace(public, name=make.HIDDEN_WORKLOAD, hidden=True)


def table(run: Run, number: int) -> WorkloadTimes:
    """The table of a candidate."""
    rows = {row.number: row for row in run.candidates.all()}
    return workload_times(run, rows[number], rows[1], rows[1])


def page(run: Run, number: int) -> str:
    """The page of a candidate, as everybody sees it."""
    return Client().get(f"{run.get_absolute_url()}candidates/{number}/").content.decode()


def test_the_table_belongs_to_the_ranked_time(start: Start, world: World) -> None:
    run = searched(start, world)
    assert table(run, 4).of == "the quick evaluation"
    end(run, 4, Mode.RANKED, 690.0, workloads=timed(690.0))
    world.advance(run)
    found = table(run, 4)
    assert found.of == "the ranked evaluation"
    assert [(row.name, row.time_ns) for row in found.rows] == [("n256", 690.0)]
    assert found.notes == ("Over seed and over parent compare the times of the quick evaluation.",)
    assert found.rows[0].over_seed.value == 1.0
    text = page(run, 4)
    assert "the ranked evaluation" in text
    assert make.HIDDEN_WORKLOAD not in text


def test_a_longer_audit_keeps_the_baselines_of_the_ranking(start: Start, world: World) -> None:
    run = searched(start, world)
    end(run, 4, Mode.RANKED, 690.0, workloads=timed(690.0))
    world.advance(run)
    end(run, 4, Mode.AUDIT, 695.0, workloads=timed(695.0, baselines={}))
    world.advance(run)
    found = table(run, 4)
    assert found.of == "the audit"
    assert found.rows[0].time_ns == 695.0
    assert found.rows[0].baseline_ns


def test_intervals_that_overlap_are_no_difference(start: Start, world: World) -> None:
    run = searched(start, world)
    over = table(run, 4).rows[0].over_seed
    assert (over.low or 9) < 1 < (over.high or 0)
    assert "not different from the seed" in page(run, 4)
    assert "not different from the parent" in page(run, 4)


def stored(run: Run, latency_ns: float, told_ns: float) -> Candidate:
    """A candidate without an evaluation here, whose feedback is of `told_ns`."""
    workload = {"name": "n256", "time_ns": told_ns, "low_ns": told_ns, "high_ns": told_ns}
    feedback = codec.encode(Feedback(verdict="CORRECT", reason="", latency_ns=told_ns))
    return make.make_candidate(
        run, state="measured", verdict="CORRECT", latency_ns=latency_ns,
        feedback={**feedback, "workloads": [workload]},
    )  # fmt: skip


def test_stored_feedback_of_another_evaluation_is_said_to_be_so() -> None:
    run = make.make_run()
    stored(run, 1000.0, 1000.0)
    stored(run, 700.0, 500.0)
    assert table(run, 1).notes == ()
    found = table(run, 2)
    assert found.notes == ("The time above is from another evaluation than these.",)
    assert found.rows[0].over_seed.value == 2.0
