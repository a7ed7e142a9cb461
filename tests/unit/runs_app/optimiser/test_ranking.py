"""A run's best is ranked before the run says so; page, API and rows tell it, with its times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data import codec
from gpu_runner.data.evaluation import WorkloadResult
from gpu_runner.data.event import EventKind
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Candidate, Evaluation, Run
from runs_app.optimiser.candidate_page import WorkloadTimes, workload_times
from runs_app.optimiser.changes import change_of
from runs_app.optimiser.evolve.config import Budget
from runs_app.optimiser.evolve.feedback import Feedback
from runs_app.optimiser.selectors.compared import baseline_of
from runs_app.optimiser.selectors.confirmation import ConfirmationState, confirmation_of
from runs_app.optimiser.selectors.over_seed import over_seeds
from runs_app.optimiser.selectors.runs import active_s
from runs_app.optimiser.services.control import extend_run, pause_run, resume_run, stop_run
from runs_app.optimiser.services.replay import replay_run
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Start, World
from tests.unit.runs_app.optimiser.test_steps import assert_rows_tell_what_the_log_tells

pytestmark = pytest.mark.django_db

REASON = "correct on the listed workloads, but not on a hidden one"


def searched(start: Start, world: World, third: float = 800.0, **overrides: Any) -> Run:
    """A run whose search has found candidates 2 to 4, in 900, 800 and 700 ns."""
    run = start(ranks_best=True, **overrides)
    world.to_first_calls(run)
    world.answer(run)
    world.advance(run)
    for number, latency_ns in ((2, 900.0), (3, third), (4, 700.0)):
        end(run, number, Mode.QUICK, latency_ns)
    world.advance(run)
    return run


def end(run: Run, number: int, mode: Mode, said: float | Verdict, **more: Any) -> None:
    """A runner ends the evaluation of a candidate; `more` are fields of its result."""
    row = Evaluation.objects.get(
        submission__candidate__number=number, submission__run=run, mode=mode.value, status="QUEUED"
    )
    correct = not isinstance(said, Verdict)
    fields: dict[str, Any] = {"latency_ns": said} if correct else {"reason": REASON}
    verdict = Verdict.CORRECT if correct else said
    make.start(row, now=make.NOW)
    result = codec.encode(make.make_result(row, verdict=verdict, **fields, **more))
    make.send(row, EventKind.FINISHED, {"result": result}, seq=2, now=make.NOW)


def waiting(run: Run) -> list[tuple[int, str]]:
    """Candidates and modes of the evaluations that wait for a runner."""
    rows = Evaluation.objects.filter(submission__run=run, status="QUEUED")
    return list(rows.values_list("submission__candidate__number", "mode"))


def page(run: Run) -> str:
    """The run's page, as everybody sees it."""
    return " ".join(Client().get(run.get_absolute_url()).content.decode().split())


def test_the_best_is_ranked_and_audited_before_the_run_ends(start: Start, world: World) -> None:
    run = searched(start, world)
    assert (run.status, waiting(run)) == ("RUNNING", [(4, "ranked")])
    assert "the search ended: all is asked" in run.reason
    assert confirmation_of(run).state is ConfirmationState.RANKING
    doubt = Suspicion(check=Check.CLOCK, reason="the clock saw twice of it")
    end(run, 4, Mode.RANKED, 690.0, suspicions=(doubt,))
    world.advance(run)
    assert (run.status, waiting(run)) == ("RUNNING", [(4, "audit")])
    end(run, 4, Mode.AUDIT, 695.0)
    world.advance(run)
    assert (run.status, run.reason) == ("FINISHED", "all is asked")
    assert (run.best_latency_ns, run.evaluations) == (695.0, 4)
    found = confirmation_of(run)
    assert found.state is ConfirmationState.AUDITED
    assert "the clock saw twice of it." in found.words
    assert found.words in page(run)


def test_a_run_stopped_before_the_audit_says_that_its_best_was_ranked(
    start: Start, world: World
) -> None:
    run = searched(start, world)
    end(run, 4, Mode.RANKED, 690.0)
    world.advance(run)
    stop_run(run=run, user=run.user, now=make.NOW)
    run.refresh_from_db()
    found = confirmation_of(run)
    assert (found.state, "was ranked" in found.words) == (ConfirmationState.RANKED, True)


def test_a_refused_best_gives_its_place_away(start: Start, world: World) -> None:
    run = searched(start, world, enters_best=True)
    end(run, 4, Mode.RANKED, Verdict.WRONG_RESULT)
    world.advance(run)
    assert (run.best.number if run.best else 0, waiting(run)) == (3, [(3, "ranked")])
    told = Client().get(f"/api/v1/runs/{run.pk}").json()
    assert (told["confirmation"]["state"], told["best"]) == ("ranking", 3)
    [ranking] = told["confirmation"]["rankings"]
    assert (ranking["candidate"], ranking["mode"], ranking["is_refusal"]) == (4, "ranked", True)
    assert_rows_tell_what_the_log_tells(run)
    end(run, 3, Mode.RANKED, 790.0)
    world.advance(run)
    end(run, 3, Mode.AUDIT, 790.0)
    world.advance(run)
    assert (run.status, run.best_latency_ns) == ("FINISHED", 790.0)
    assert [c.number for c in run.candidates.exclude(entry=None)] == [3]
    refused = confirmation_of(run).refused
    assert [(each.candidate, each.how, each.reason) for each in refused] == [(4, "ranked", REASON)]
    assert REASON in page(run)
    assert_rows_tell_what_the_log_tells(run)
    assert replay_run(run).differences == ()


def test_where_everything_is_refused_the_run_has_no_best(start: Start, world: World) -> None:
    run = start(ranks_best=True, parameters={"asks": 1})
    world.advance(run)
    end(run, 1, Mode.QUICK, Verdict.WRONG_RESULT)
    world.advance(run)
    world.answer(run)
    world.advance(run)
    end(run, 2, Mode.QUICK, 900.0)
    world.advance(run)
    end(run, 2, Mode.RANKED, Verdict.WRONG_RESULT)
    world.advance(run)
    assert (run.status, run.best, run.best_latency_ns) == ("FINISHED", None, None)
    assert confirmation_of(run).state is ConfirmationState.NONE
    assert REASON in page(run)
    assert replay_run(run).differences == ()


def test_at_the_end_of_its_time_a_run_ranks_its_best(start: Start, world: World) -> None:
    run = start(ranks_best=True, parameters={"asks": 6}, budget={"wall_time_s": 60, "usd": 1.0})
    world.to_first_calls(run)
    world.answer(run)
    world.advance(run)
    end(run, 2, Mode.QUICK, 500.0)
    world.advance(run, make.later(61))
    assert run.calls.filter(status="WAITING").count() == 0
    assert waiting(run) == [(2, "ranked")]
    end(run, 2, Mode.RANKED, 510.0)
    world.advance(run, make.later(70))
    end(run, 2, Mode.AUDIT, 510.0)
    world.advance(run, make.later(80))
    assert (run.status, run.by_budget) == ("FINISHED", True)
    assert replay_run(run).differences == ()
    extend_run(run=run, user=run.user, budget=Budget(wall_time_s=600), now=make.later(90))
    world.advance(run, make.later(90))
    assert (run.status, run.reason) == ("RUNNING", "")
    assert_rows_tell_what_the_log_tells(run)
    assert confirmation_of(run).state is ConfirmationState.AUDITED  # it is the best still
    assert replay_run(run).differences == ()


def test_the_reason_names_all_that_were_ranked_beside_it(start: Start, world: World) -> None:
    run = searched(start, world, third=701.0)
    assert set(waiting(run)) == {(4, "ranked"), (3, "ranked")}
    end(run, 4, Mode.RANKED, Verdict.UNSTABLE)
    end(run, 3, Mode.RANKED, 703.0)
    world.advance(run)
    end(run, 3, Mode.AUDIT, 702.0)
    world.advance(run)
    chosen = run.events.get(kind="chosen").payload
    assert (chosen["candidate"], chosen["reason"]) == (3, "also ranked: #4 UNSTABLE")


def test_ranking_is_no_running_time(start: Start, world: World) -> None:
    run = searched(start, world, budget={"evaluations": 9, "wall_time_s": 60})
    world.advance(run, make.later(500))
    assert (run.status, active_s(run, make.later(500))) == ("RUNNING", 0.0)
    pause_run(run=run, user=run.user, now=make.later(600))
    end(run, 4, Mode.RANKED, 690.0)
    world.advance(run, make.later(650))
    assert (run.status, waiting(run)) == ("PAUSED", [])
    resume_run(run=run, user=run.user, now=make.later(700))
    world.advance(run, make.later(900))
    assert (run.status, waiting(run)) == ("RUNNING", [(4, "audit")])
    end(run, 4, Mode.AUDIT, 695.0)
    world.advance(run, make.later(1000))
    assert (run.status, run.active_s) == ("FINISHED", 0.0)
    assert run.reason == "all is asked"


def test_an_extended_search_goes_on_beside_its_ranking(start: Start, world: World) -> None:
    run = searched(start, world, budget={"evaluations": 4, "wall_time_s": 60})
    assert (waiting(run), run.searched_at is None) == ([(4, "ranked")], False)
    extend_run(
        run=run, user=run.user, budget=Budget(evaluations=9, wall_time_s=60),
        parameters={"asks": 4}, now=make.later(500),
    )  # fmt: skip
    world.advance(run, make.later(500))
    assert (run.searched_at, run.calls.filter(status="WAITING").count()) == (None, 1)
    assert waiting(run) == [(4, "ranked")]  # it was not lost
    assert active_s(run, make.later(510)) == 10.0
    world.advance(run, make.later(570))
    assert waiting(run) == [(4, "ranked")]  # nor is it at the end of the search's time
    assert "60 s of running time" in run.reason
    assert replay_run(run).differences == ()


def timed(time_ns: float, **overrides: Any) -> tuple[WorkloadResult, ...]:
    """A listed workload and a hidden one, each with that time."""
    measurement = make.make_measurement(time_ns)
    public = replace(make.make_workload_result(), measurement=measurement, **overrides)
    return public, replace(public, name=make.HIDDEN_WORKLOAD, hidden=True)


def table(run: Run, number: int) -> WorkloadTimes:
    """The table of a candidate."""
    rows = {row.number: row for row in run.candidates.all()}
    return workload_times(run, rows[number], rows[1], rows[1], baseline_of(run))


def candidate_page(run: Run, number: int) -> str:
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
    [note] = found.notes
    assert all(each in note for each in ("vs seed", "vs parent", "the quick evaluation"))
    assert found.rows[0].over_seed.value == 1.0
    text = candidate_page(run, 4)
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
    assert "not different from the seed" in candidate_page(run, 4)
    assert "not different from the parent" in candidate_page(run, 4)


def stored(run: Run, latency_ns: float, told_ns: float) -> Candidate:
    """A candidate without an evaluation here, whose feedback is of `told_ns`."""
    workload = {"name": "n256", "time_ns": told_ns, "low_ns": told_ns, "high_ns": told_ns}
    feedback = codec.encode(Feedback(verdict="CORRECT", reason="", latency_ns=told_ns))
    return make.make_candidate(
        run, state="measured", verdict="CORRECT", latency_ns=latency_ns,
        feedback={**feedback, "workloads": [workload]},
    )  # fmt: skip


def test_stored_feedback_is_of_the_search() -> None:
    run = make.make_run()
    stored(run, 1000.0, 1000.0)
    stored(run, 700.0, 500.0)
    assert table(run, 2).rows[0].over_seed.value == 2.0
    assert "500 <span" in candidate_page(run, 2)


def test_a_speedup_over_the_seed_compares_times_of_the_search(start: Start, world: World) -> None:
    """The ranked time is from another plan: the seed has none of it."""
    run = searched(start, world)
    end(run, 4, Mode.RANKED, 500.0, workloads=timed(500.0))
    world.advance(run)
    end(run, 4, Mode.AUDIT, 500.0, workloads=timed(500.0))
    world.advance(run)
    assert (run.status, run.best_latency_ns) == ("FINISHED", 500.0)
    found = over_seeds([run])[run.pk]
    assert (found.seed.ns, found.own.ns) == (1000.0, 700.0)
    low, high = found.interval or (0, 0)
    assert low < found.value < high
    text = page(run)
    assert "1.43×" in text
    assert "2.00×" not in text
    assert "(from 1.00 µs to 700 ns, 95 %: " in text
    assert "1.43×" in candidate_page(run, 4)
    answer = Client().get(f"/api/v1/runs/{run.pk}").json()
    assert answer["over_seed"] == pytest.approx(1000 / 700)
    change = change_of(run, run.events.order_by("seq"), make.NOW)
    shown = {row["number"]: row["search_ns"] for row in change["candidates"]}
    assert (shown[1], shown[4]) == (1000.0, 700.0)
