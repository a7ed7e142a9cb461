"""Runs that an update or an admin's stop comes across."""

from __future__ import annotations

import pytest

from runs_app.models import Announcement, Run
from runs_app.optimiser.services.history import RunDetails, stored_events
from runs_app.optimiser.services.replay import replay_run
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Start, World
from tests.unit.runs_app.optimiser.test_steps import kinds

pytestmark = pytest.mark.django_db


def test_a_run_of_an_older_version_goes_on(start: Start, world: World) -> None:
    run = start()
    world.advance(run)
    world.measure(run, 1000.0)
    world.advance(run)
    seed = run.candidates.get(number=1)
    run.candidates.filter(pk=seed.pk).update(feedback={**seed.feedback, "dropped_since": 0.5})
    Run.objects.filter(pk=run.pk).update(
        problem={**run.problem, "dropped_since": 1}, config={**run.config, "dropped_since": 2}
    )
    event = run.events.get(kind="measured")
    run.events.filter(pk=event.pk).update(payload={**event.payload, "dropped_since": 3})
    run.refresh_from_db()
    assert RunDetails(run).feedback(1) is not None
    assert len(stored_events(run)) == run.events_stored - 1  # all but "started"
    world.answer(run)
    world.advance(run)
    world.measure(run, 900.0)
    world.advance(run)
    assert (run.status, run.reason) == ("FINISHED", "all is asked")


def test_nothing_enters_by_itself_while_submissions_are_stopped(start: Start, world: World) -> None:
    run = start(enters_best=True)
    world.to_first_calls(run)
    world.answer(run)
    world.advance(run)
    world.measure(run, 500.0)
    Announcement.objects.create(kind="submissions", text="the disk is full", created_at=make.NOW)
    world.advance(run)
    assert (run.status, run.candidates.get(number=4).entry) == ("FINISHED", None)
    assert kinds(run)[-2:] == ["finished", "note"]
    [note] = run.events.filter(kind="note")
    assert "Candidate 4 was not submitted: this site" in note.payload["text"]
    assert "the disk is full. Submit it by hand" in note.payload["text"]
    assert replay_run(run=run).differences == ()
