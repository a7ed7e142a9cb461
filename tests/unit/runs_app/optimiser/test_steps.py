"""A run goes from its seed to its end, step by step, and a step that comes twice does nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client

from gpu_runner.data.codec import DataError
from gpu_runner.data.event import EventKind
from runs_app.core.errors import NotAllowed
from runs_app.core.work.access import find_evaluation, listed_evaluations
from runs_app.models import Announcement, BaselineMeasurement, Evaluation, Run, Submission
from runs_app.optimiser.evolve.config import Budget
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.services import record as run_record
from runs_app.optimiser.services.advance import advance_run
from runs_app.optimiser.services.control import extend_run, pause_run, resume_run
from runs_app.optimiser.services.enter import enter_candidate
from runs_app.optimiser.services.history import RunDetails, load_history, stored_events
from runs_app.optimiser.services.replay import replay_run
from runs_app.submitting.quota import quota
from runs_app.submitting.services import cancel, rerun
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Plain, Start, World

pytestmark = pytest.mark.django_db


def kinds(run: Run) -> list[str]:
    return list(run.events.order_by("seq").values_list("kind", flat=True))


def test_a_run_from_its_seed_to_its_end(start: Start, world: World) -> None:
    run = start()
    assert make.HIDDEN_WORKLOAD not in str(run.problem)
    assert "1777" not in str(run.problem)
    assert run.problem["workloads"] == ["n256: N=256", "n4096: N=4096"]
    assert world.advance(run) == 2
    assert world.measure(run, 1000.0) == 1
    world.advance(run)
    assert (run.seed_latency_ns, run.calls.count(), len(world.calls)) == (1000.0, 3, 3)
    assert world.advance(run) == 0  # a step without news
    assert advance_run(run_id="00000000-0000-4000-8000-000000000000", now=make.NOW) == 0
    assert world.answer(run) == 3
    world.advance(run)
    assert world.measure(run, 900.0) == 3
    world.advance(run)
    assert (run.status, run.reason) == ("FINISHED", "all is asked")
    assert run.best is not None
    assert (run.best.number, run.best_latency_ns) == (4, 898.0)
    assert (run.evaluations, run.tokens, run.candidates_made) == (4, 450, 4)
    assert run.usd == pytest.approx(0.0006)
    assert kinds(run)[:4] == ["started", "drafted", "measuring", "measured"]
    assert kinds(run)[-1] == "finished"
    seqs = list(run.events.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, run.events_stored + 1))
    assert [each.author for each in Submission.objects.filter(run=run)] == [run.user] * 4
    assert_rows_tell_what_the_log_tells(run)


def assert_rows_tell_what_the_log_tells(run: Run) -> None:
    """A history loaded from rows is the one that the events give."""
    run.refresh_from_db()
    folded = History(RunDetails(run))
    for event in stored_events(run):
        folded.apply(event)
    loaded = load_history(run)
    for name in ("candidates", "questions", "best", "finished", "settled", "paid_tokens"):
        assert getattr(loaded, name) == getattr(folded, name), name
    assert loaded.correct() == folded.correct()
    assert loaded.told.begun == folded.told.begun
    assert loaded.paid_usd == pytest.approx(folded.paid_usd)


def test_candidates_are_on_no_list_and_count_for_no_quota(start: Start, world: World) -> None:
    run = start(private=True)
    world.to_first_calls(run)
    candidate = Evaluation.objects.get(submission__run=run)
    assert candidate.submission.private
    assert quota(run.user, make.later(1)).today == 0
    assert not listed_evaluations(run.user).exists()
    assert find_evaluation(candidate.pk, run.user) == candidate
    assert find_evaluation(candidate.pk, make.make_user()) is None
    with pytest.raises(NotAllowed, match="run's candidate"):
        rerun(submission=candidate.submission, user=run.user, now=make.NOW)


def test_the_seed_brings_baselines_once(start: Start, world: World) -> None:
    run = start()
    world.advance(run)
    measurement = BaselineMeasurement.objects.get()
    assert (measurement.version, measurement.device) == (run.task_version, run.device)
    second = start(user=run.user, task_version=run.task_version)
    world.advance(second)
    make.send(measurement, EventKind.FINISHED, {"report": make.baseline_report(measurement)})
    third = start(user=run.user, task_version=run.task_version)
    assert third.problem["baselines_ns"] == pytest.approx({"compiled": 1500.0, "eager": 2000.0})
    world.advance(third)
    assert BaselineMeasurement.objects.count() == 1


def test_a_cancelled_candidate_is_told_and_the_run_goes_on(start: Start, world: World) -> None:
    run = start()
    world.advance(run)
    candidate = Evaluation.objects.get(submission__run=run)
    cancel(evaluation=candidate, user=run.user, now=make.NOW)
    assert world.advances == [str(run.pk)]
    world.advance(run)
    seed = run.candidates.get(number=1)
    assert (seed.state, seed.verdict, seed.measuring) == ("measuring", "", ["quick"])
    assert candidate.submission.evaluations.filter(status="QUEUED").count() == 1
    world.measure(run, 900.0)
    world.advance(run)
    seed.refresh_from_db()
    assert (seed.verdict, seed.measured, seed.latency_ns) == ("CORRECT", ["quick"], 900.0)
    assert run.calls.count() == 3
    assert (run.evaluations, replay_run(run=run).differences) == (2, ())


def test_a_candidate_is_given_up_after_three_lost_evaluations(start: Start, world: World) -> None:
    run = start()
    world.to_first_calls(run)
    world.answer(run)
    world.advance(run)
    lost = {"submission__candidate__run": run, "submission__candidate__number": 2}
    for _ in range(3):
        candidate = Evaluation.objects.get(**lost, status="QUEUED")
        cancel(evaluation=candidate, user=run.user, now=make.NOW)
        world.advance(run)
    given_up = run.candidates.get(number=2)
    assert (given_up.state, given_up.verdict) == ("measured", "SYSTEM_ERROR")
    assert given_up.feedback["verdict"] == "SYSTEM_ERROR"
    world.measure(run, 800.0)
    world.advance(run)
    assert (run.status, run.reason, run.evaluations) == ("FINISHED", "all is asked", 6)
    assert_rows_tell_what_the_log_tells(run)
    assert replay_run(run=run).differences == ()


def test_what_a_candidate_must_beat_goes_to_its_runner(start: Start, world: World) -> None:
    run = start(strategy="islands", parameters={"proposals": 4}, profile="none")
    world.advance(run)
    queued = Evaluation.objects.filter(submission__run=run, status="QUEUED")
    assert queued.get().must_beat_ns == {}
    world.measure(run)
    world.advance(run)
    world.answer(run)
    world.advance(run)
    assert queued.exists()
    for evaluation in queued:
        assert evaluation.request().must_beat_ns == {"n256": pytest.approx(1200.0)}
    assert replay_run(run).differences == ()


def test_an_extension_measures_what_the_end_of_time_took_back(start: Start, world: World) -> None:
    run = start(budget={"wall_time_s": 60})
    at = 0
    for _ in range(4):  # more often than an evaluation may be lost
        world.advance(run, make.later(at))
        world.advance(run, make.later(at + 90))
        assert (run.status, run.by_budget) == ("FINISHED", True)
        seed = run.candidates.get(number=1)
        assert (seed.state, seed.verdict, seed.measuring) == ("drafted", "", [])
        at += 100
        longer = Budget(wall_time_s=at + 60)
        extend_run(run=run, user=run.user, budget=longer, now=make.later(at))
    world.advance(run, make.later(at))
    assert world.measure(run, now=make.later(at)) == 1
    world.advance(run, make.later(at))
    assert run.candidates.get(number=1).verdict == "CORRECT"
    assert {call.parents[0] for call in run.calls.all()} == {1}
    assert_rows_tell_what_the_log_tells(run)
    assert replay_run(run=run).differences == ()


def test_a_source_that_no_compiler_may_see_is_told_of_once(
    start: Start, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise DataError("source", "is too long")

    run = start()
    monkeypatch.setattr(run_record, "candidate_solution", refused)
    world.advance(run)
    world.advance(run)
    seed = run.candidates.get(number=1)
    assert (seed.verdict, seed.measured, seed.submission) == ("COMPILE_ERROR", ["quick"], None)
    assert "empty or too long" in seed.reason
    assert replay_run(run=run).differences == ()


def test_a_lost_candidates_reason_names_no_hidden_workload(start: Start, world: World) -> None:
    run = start()
    world.advance(run)
    lost = Evaluation.objects.filter(submission__run=run)
    reason = f"lost 3 times, most recently because: {make.HIDDEN_WORKLOAD} hung"
    lost.update(status="FINISHED", verdict="SYSTEM_ERROR", reason=reason, finished_at=make.later(1))
    world.advance(run)
    event = run.events.get(kind="measured")
    assert event.payload["reason"] == "lost 3 times, most recently because: a hidden workload hung"
    assert make.HIDDEN_WORKLOAD not in str(list(run.candidates.values_list("reason", "feedback")))


def test_an_error_of_the_site_pauses_and_steps_that_die_do(
    start: Start, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """What a step sees of its process's end: nothing that it could catch."""

    def failing(error: type[BaseException], times: int) -> None:
        def ask(*_: object) -> None:
            raise error("the database is locked")

        with monkeypatch.context() as patch:
            patch.setattr(Plain, "ask", ask)
            for _ in range(times):
                with pytest.raises(error):
                    advance_run(run_id=run.pk, now=make.NOW)
            if error is not OperationalError:
                assert advance_run(run_id=run.pk, now=make.NOW) == 0
        run.refresh_from_db()

    run = start()
    failing(ZeroDivisionError, 0)
    assert (run.status, "ZeroDivisionError" in run.reason) == ("PAUSED", True)
    assert kinds(run) == ["started", "paused"]
    resume_run(run=run, user=run.user, now=make.NOW)
    failing(Killed, 5)
    assert (run.status, run.steps_begun) == ("PAUSED", 0)
    assert "its last 5 steps crashed" in run.reason
    resume_run(run=run, user=run.user, now=make.NOW)
    failing(OperationalError, 7)  # is not held against it
    assert world.advance(run) == 2
    assert (run.status, run.steps_begun) == ("RUNNING", 0)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_best_candidate_enters_by_itself(start: Start, world: World, stopped: bool) -> None:
    run = start(enters_best=True)
    if stopped:
        note = {"kind": "submissions", "text": "the disk is full", "created_at": make.NOW}
        Announcement.objects.create(**note)
    world.to_the_end(run, 500.0)
    assert run.status == "FINISHED"
    best = run.candidates.get(number=4)
    assert kinds(run)[-2:] == ["finished", "note" if stopped else "entered"]
    assert replay_run(run=run).differences == ()
    if stopped:
        assert best.entry is None
        assert "the disk is full" in run.events.get(kind="note").payload["text"]
        return
    assert (best.entry.run, best.entry.agent.name) == (None, "kbench-plain")
    assert best.entry.language_model.name == "writer-1"
    assert best.entry.evaluations.get().mode == "ranked"
    shown_as_its_submission(run, best.entry.evaluations.get())
    with pytest.raises(NotAllowed, match="already been entered"):
        enter_candidate(candidate=best, user=run.user, now=make.NOW)


def shown_as_its_submission(run: Run, ranked: Evaluation) -> None:
    """The run's page says of its submission what the submission's page says."""
    for fields, words in (
        ({}, "Queued"),
        (
            {"status": "FINISHED", "verdict": "CORRECT", "latency_ns": 9.0, "audited": "waiting"},
            "Unverified",
        ),
        ({"audited": "passed"}, "Verified"),
    ):
        for name, value in fields.items():
            setattr(ranked, name, value)
        if fields:
            ranked.finished_at = make.NOW
            ranked.save()
        head = Client().get(f"{run.get_absolute_url()}head/").content.decode()
        assert words in head.split('id="entry"')[1].split("</p>")[0]


def test_a_stored_run_replays(start: Start, world: World) -> None:
    run = start(parameters={"asks": 5}, concurrent_asks=2, budget={"evaluations": 4})
    world.to_first_calls(run)
    pause_run(run=run, user=run.user, now=make.NOW)
    world.answer(run)
    world.advance(run)
    resume_run(run=run, user=run.user, now=make.NOW)
    for _ in range(4):
        world.advance(run)
        world.answer(run, status="FAILED", error="no", error_kind="empty")
        world.measure(run)
    world.advance(run)
    extend_run(run=run, user=run.user, budget=Budget(evaluations=9), now=make.NOW)
    for _ in range(4):
        world.advance(run)
        world.answer(run)
        world.measure(run)
    assert run.is_over
    report = replay_run(run=run)
    assert report.differences == ()
    assert report.events == len(stored_events(run))
    call_command("replay_run", str(run.pk))
    run.candidates.filter(number=3).update(source="int x;")
    with pytest.raises(CommandError, match="difference"):
        call_command("replay_run", str(run.pk))


def test_a_step_needs_no_more_queries_in_a_long_run(
    start: Start, world: World, django_assert_max_num_queries: Any
) -> None:
    run = start(parameters={"asks": 40}, concurrent_asks=1)
    world.to_first_calls(run)
    for _ in range(3):
        with django_assert_max_num_queries(22):
            assert advance_run(run_id=run.pk, now=make.NOW) == 0
        world.answer(run)
        world.advance(run)
        world.measure(run)
        world.advance(run)


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
