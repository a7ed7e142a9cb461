"""How the best of a run grew: what counts on which axis, and whose times it shows."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.verdict import Mode
from runs_app.features.compare.curve import Point, curve
from runs_app.models import Run
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.config import Budget
from tests import factories as make
from tests.unit.runs_app.features.compare.test_runs import made_call, measured

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def told(run: Run, *log: tuple[int, Any]) -> Run:
    """The run with these events, each after so many seconds."""
    for seconds, event in log:
        make.make_run_event(run, event, now=make.later(seconds))
    return run


def last(candidate: int, mode: Mode, latency_ns: float) -> events.Measured:
    """A kernel is ranked or audited, and is right."""
    return events.Measured(
        candidate=candidate, mode=mode, verdict="CORRECT", reason="", latency_ns=latency_ns
    )


def short(points: list[Point]) -> list[tuple[int, float, float]]:
    """Evaluations, seconds and times."""
    return [(each.evaluations, each.active_s, each.latency_ns) for each in points]


def test_a_curve_counts_evaluations_money_and_time_without_pauses() -> None:
    run = make.make_run()
    for seconds, kind in (
        (0, "started"),
        (10, measured(1, 1000.0, best=True)),
        (30, measured(2, None, best=False)),
        (30, "paused"),
        (1030, "resumed"),
        (1050, measured(3, 400.0, best=True)),
        (1060, events.Finished(reason="done")),
    ):
        make.make_run_event(run, kind, now=make.later(seconds))
    for seconds, usd in ((20, 0.25), (1040, 0.5), (1055, 0.125)):
        made_call(run, run.calls.count() + 1, cost_usd=usd, ended_at=make.later(seconds))
    points = curve(run)
    assert [(p.evaluations, p.usd, p.active_s, p.latency_ns) for p in points] == [
        (1, 0.0, 10.0, 1000.0),
        (3, 0.75, 50.0, 400.0),
        (3, 0.875, 60.0, 400.0),
    ]


def ranked(**overrides: Any) -> Run:
    """A finished run of 3 evaluations whose best, candidate 2, was ranked and audited since."""
    run = make.make_run(status=Run.Status.FINISHED, **overrides)
    found: dict[str, Any] = {"state": "measured", "verdict": "CORRECT"}
    make.make_candidate(run, **found, latency_ns=1000.0)
    run.best = make.make_candidate(run, **found, latency_ns=450.0, speedup=3.0)
    make.make_candidate(run, state="measured", verdict="WRONG_RESULT")
    run.best_latency_ns, run.evaluations = 450.0, 3
    run.save()
    return told(
        run, (0, "started"), (10, measured(1, 1000.0, best=True)),
        (20, measured(2, 400.0, best=True)), (30, measured(3, 300.0, best=True)),
        (40, events.Searched(reason="all is asked", by_budget=True)),
        (140, last(2, Mode.RANKED, 430.0)), (240, last(2, Mode.AUDIT, 450.0)),
        (240, events.Finished(reason="all is asked", by_budget=True)),
    )  # fmt: skip


def test_what_follows_a_search_is_on_no_axis_and_times_are_what_the_run_says() -> None:
    run = ranked()
    assert short(curve(run)) == [(1, 10.0, 1000.0), (2, 20.0, 450.0), (3, 40.0, 450.0)]


def test_an_extended_run_goes_on_where_its_search_was() -> None:
    run = told(
        ranked(), (1000, events.Extended(budget=Budget(evaluations=9))),
        (1010, measured(4, 420.0, best=True)),
    )  # fmt: skip
    run.best, run.best_latency_ns = None, None
    assert short(curve(run))[-1] == (4, 50.0, 420.0)
