"""Pause, resume, stop and extend; caps that hold to the call; and who may do what."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.verdict import Mode
from leaderboard_app.boards.selectors import devices_with_results
from runs_app.core.errors import NotAllowed, QuotaExceeded, SubmissionError
from runs_app.core.integrity.eligibility import judged_evaluations
from runs_app.core.work import lifecycle
from runs_app.core.work.access import author_names
from runs_app.models import Evaluation, LanguageModel, Run, Submission
from runs_app.optimiser.evolve.config import Budget
from runs_app.optimiser.services.control import extend_run, pause_run, resume_run, stop_run
from runs_app.optimiser.services.enter import enter_candidate
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import MODEL, Start, World

pytestmark = pytest.mark.django_db


def test_a_paused_run_keeps_what_comes_and_begins_nothing(start: Start, world: World) -> None:
    run = start(parameters={"asks": 5}, concurrent_asks=2)
    world.to_first_calls(run)
    assert run.calls.count() == 2
    pause_run(run=run, user=run.user, now=make.later(60))
    world.answer(run)
    world.advance(run, make.later(70))
    assert (run.status, run.active_s) == ("PAUSED", 60.0)
    assert run.candidates_made == 3
    assert (run.calls.count(), run.evaluations) == (2, 1)
    world.calls.clear()
    resume_run(run=run, user=run.user, now=make.later(100))
    world.advance(run, make.later(100))
    assert (run.status, run.reason) == ("RUNNING", "")
    assert (run.calls.count(), run.evaluations, len(world.calls)) == (4, 3, 2)
    pause_run(run=run, user=run.user, now=make.later(100))
    world.calls.clear()
    resume_run(run=run, user=run.user, now=make.later(100))
    assert len(world.calls) == 2  # those that wait are queued again


def test_stopping_takes_back_what_was_not_sent(start: Start, world: World) -> None:
    run = start()
    world.to_first_calls(run)
    world.answer(run)
    world.advance(run)
    stop_run(run=run, user=run.user, now=make.later(5))
    world.advance(run, make.later(5))
    evaluations = Evaluation.objects.filter(submission__run=run)
    assert sorted(evaluations.values_list("status", flat=True)) == ["CANCELLED"] * 3 + ["FINISHED"]
    assert (run.status, run.ended_at) == ("STOPPED", make.later(5))
    states = run.candidates.order_by("number").values_list("state", flat=True)
    assert list(states) == ["measured", *["drafted"] * 3]
    for act in (pause_run, resume_run, stop_run):
        with pytest.raises(NotAllowed, match="stopped"):
            act(run=run, user=run.user, now=make.NOW)
    with pytest.raises(NotAllowed, match="start another run"):
        extend_run(run=run, user=run.user, budget=Budget(usd=9), now=make.NOW)
    unsent = start()
    world.to_first_calls(unsent)
    assert unsent.usd > 0
    stop_run(run=unsent, user=unsent.user, now=make.NOW)
    world.advance(unsent)
    assert (unsent.usd, unsent.tokens) == (0.0, 0)
    assert set(unsent.calls.values_list("status", "error_kind")) == {("FAILED", "unsent")}


@pytest.mark.parametrize("cap", ["evaluations", "wall_time_s", "usd", "tokens"])
def test_a_budget_of_zero_is_refused(start: Start, world: World, cap: str) -> None:
    with pytest.raises(SubmissionError) as refused:
        start(budget={cap: 0})
    assert refused.value.field == f"budget.{cap}"
    assert not Run.objects.exists()


def test_wall_time_counts_running_only(start: Start, world: World) -> None:
    run = start(budget={"wall_time_s": 100})
    world.advance(run)
    pause_run(run=run, user=run.user, now=make.later(90))
    resume_run(run=run, user=run.user, now=make.later(1000))
    world.advance(run, make.later(1005))
    assert run.status == "RUNNING"
    world.advance(run, make.later(1011))
    assert (run.status, run.by_budget) == ("FINISHED", True)
    assert "100 s" in run.reason


def test_a_retired_task_pauses_the_run(start: Start, world: World) -> None:
    run = start()
    world.advance(run)
    task = run.task_version.task
    task.state = task.State.RETIRED
    task.save()
    world.advance(run)
    assert run.status == "PAUSED"
    assert "retired" in run.reason


def test_failed_calls_pause_the_run(start: Start, world: World) -> None:
    run = start(parameters={"asks": 9}, concurrent_asks=5)
    world.to_first_calls(run)
    failed = {"status": "FAILED", "error": "could not connect", "error_kind": "unavailable"}
    world.answer(run, " ", tokens_in=0, tokens_out=0, cost_usd=0.0, **failed)
    world.advance(run)
    assert (run.status, run.failures) == ("PAUSED", 5)
    assert "could not connect" in run.reason
    resume_run(run=run, user=run.user, now=make.NOW)
    world.advance(run)
    assert (run.status, run.failures) == ("RUNNING", 0)
    first = run.calls.filter(status="WAITING").order_by("number")[:1].get()
    wrong_key = {"status": "FAILED", "error": "no key", "error_kind": "auth"}
    run.calls.filter(pk=first.pk).update(**wrong_key, ended_at=make.NOW)
    world.advance(run)
    assert (run.status, run.reason) == ("PAUSED", "no key")  # at once


def test_candidates_without_verdicts_pause_the_run(start: Start, world: World) -> None:
    run = start(parameters={"asks": 6}, concurrent_asks=6, concurrent_evaluations=6)
    world.to_first_calls(run)
    world.answer(run)
    world.advance(run)
    assert world.measure(run, verdict="SYSTEM_ERROR") == 6
    world.advance(run)
    assert run.status == "PAUSED"
    assert "5 evaluations in a row" in run.reason
    resume_run(run=run, user=run.user, now=make.later(60))
    world.advance(run, make.later(60))
    assert world.measure(run, verdict="SYSTEM_ERROR", most=4, now=make.later(70)) == 4
    world.advance(run, make.later(70))
    assert run.status == "RUNNING"
    assert world.measure(run, verdict="SYSTEM_ERROR", most=1, now=make.later(80)) == 1
    world.advance(run, make.later(80))
    assert run.status == "PAUSED"


def test_strangers_control_nothing(start: Start, world: World) -> None:
    run, stranger = start(), make.make_user()
    for act in (pause_run, resume_run, stop_run):
        with pytest.raises(NotAllowed, match="only the run's owner"):
            act(run=run, user=stranger, now=make.NOW)
    with pytest.raises(NotAllowed):
        extend_run(run=run, user=stranger, budget=Budget(usd=1), now=make.NOW)
    world.advance(run)
    world.measure(run)
    world.advance(run)
    candidate = run.candidates.get()
    with pytest.raises(NotAllowed):
        enter_candidate(candidate=candidate, user=stranger, now=make.NOW)
    assert pause_run(run=run, user=make.make_admin(), now=make.NOW).status == "PAUSED"


def test_entering_by_click_counts_for_the_quota(start: Start, world: World, settings: Any) -> None:
    run = start()
    world.to_first_calls(run)
    settings.MAX_SUBMISSIONS_PER_DAY = 1
    world.answer(run)
    world.advance(run)
    world.measure(run)
    world.advance(run)
    candidate, other = run.candidates.filter(number__in=(2, 3)).order_by("number")
    entry = enter_candidate(candidate=candidate, user=run.user, now=make.NOW)
    assert (entry.origin, entry.run, entry.agent) == ("entered", None, run.agent)
    with pytest.raises(QuotaExceeded):
        enter_candidate(candidate=other, user=run.user, now=make.NOW)


def test_too_many_runs_or_no_address_are_refused(start: Start, settings: Any) -> None:
    settings.MAX_RUNNING_RUNS_PER_USER = 1
    run = start()
    with pytest.raises(QuotaExceeded, match="is running"):
        start(user=run.user, task_version=run.task_version)
    assert start(task_version=run.task_version).user != run.user
    LanguageModel.objects.filter(name=MODEL).update(base_url="")
    with pytest.raises(SubmissionError, match="no base URL"):
        start()


def test_candidates_are_on_no_board(start: Start, world: World) -> None:
    run = start()
    world.advance(run)
    candidate = Submission.objects.get(run=run)
    device, mode = run.device, Mode.RANKED
    ranked = lifecycle.evaluate(submission=candidate, device=device, mode=mode, now=make.NOW)
    make.finish(ranked)
    assert Evaluation.objects.filter(mode="ranked", verdict="CORRECT").exists()
    assert not judged_evaluations().exists()
    assert devices_with_results() == []
    assert author_names(run.user) == ([], [])
