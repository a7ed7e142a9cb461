"""A run goes on over a spool, a batch a generation, whatever is killed on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.verdict import Verdict
from runs_app.features.spool.services import import_spool, take_back
from runs_app.models import Evaluation, Run
from runs_app.optimiser.services.replay import replay_run
from tests import factories as make
from tests.unit.runs_app.features.spool.hosts import export, work
from tests.unit.runs_app.optimiser.conftest import Start, World
from tests.unit.runs_app.optimiser.test_steps import assert_rows_tell_what_the_log_tells

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("believed")]

GENERATIONS, PROPOSALS = 2, 3


def batch(run: Run, folder: Path, latency_ns: float, *, wrong: int = 0) -> int:
    """Hand out what waits, let a host do the run's, take it in twice; returns how many it were."""
    export(folder)
    out = Evaluation.objects.filter(submission__run=run, status="RUNNING")
    rows = list(out.order_by("submission__candidate__number"))
    for place, row in enumerate(rows):
        if place < wrong:
            work(folder, row, verdict=Verdict.COMPILE_ERROR, reason="no such name")
        else:
            work(folder, row, latency_ns=latency_ns - place)
    done = import_spool(folder=folder, now=make.NOW)
    assert (done.new, done.refused, out.exists()) == (len(rows), [], False)
    assert import_spool(folder=folder, now=make.NOW).new == 0
    return len(rows)


def test_each_generation_is_one_batch(start: Start, world: World, tmp_path: Path) -> None:
    parameters = {"generations": GENERATIONS, "proposals": PROPOSALS, "recommendations": 0}
    run = start(strategy="evolve", parameters=parameters, profile="none")
    folder = tmp_path / "spool"
    world.advance(run)
    assert batch(run, folder, 1000.0) == 1  # the seed
    for generation in range(1, GENERATIONS + 1):
        world.advance(run)
        assert world.answer(run) == PROPOSALS
        world.advance(run)
        export(folder)
        assert take_back(folder=folder, now=make.NOW) >= PROPOSALS  # and goes out again below
        assert batch(run, folder, 1000.0 - 100 * generation, wrong=1) == PROPOSALS
    world.advance(run)
    assert (run.status, run.best_latency_ns) == ("FINISHED", 798.0)
    assert run.evaluations == 1 + GENERATIONS * PROPOSALS
    assert_rows_tell_what_the_log_tells(run)
    assert replay_run(run).differences == ()
