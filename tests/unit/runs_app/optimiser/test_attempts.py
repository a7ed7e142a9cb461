"""What a command tries is counted in the run's budget; and a run goes on over a spool."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import Verdict
from runs_app.core.work.access import listed_evaluations
from runs_app.models import Evaluation, LanguageModel, Run
from runs_app.optimiser.evolve import budget
from runs_app.optimiser.llm.tries import Refused
from runs_app.optimiser.services import log as run_log
from runs_app.optimiser.services.attempts import RunAttempts
from runs_app.optimiser.services.control import pause_run
from runs_app.optimiser.services.history import load_history
from runs_app.optimiser.services.replay import replay_run
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Start, World
from tests.unit.runs_app.optimiser.test_steps import assert_rows_tell_what_the_log_tells

pytestmark = pytest.mark.django_db

SOURCE = 'extern "C" void scale(float* out, const float* x, int N) {{ out[0] = {}; }}'


def trying(start: Start, world: World, most: int = 2, **budget: int) -> RunAttempts:
    """A run whose first call is under way, of a language model with so many attempts."""
    run = start(budget={"evaluations": 50, **budget})
    LanguageModel.objects.update(attempts=most)
    world.to_first_calls(run)
    call = run.calls.order_by("number")[0]
    call.status, call.sent_at = "SENT", make.NOW
    call.save()
    return RunAttempts(call, lambda: make.NOW)


def end(key: str, verdict: Verdict, **fields: object) -> None:
    """A runner ends an attempt."""
    row = Evaluation.objects.get(pk=key)
    make.start(row, now=make.NOW)
    result = codec.encode(make.make_result(row, verdict=verdict, **fields))
    make.send(row, EventKind.FINISHED, {"result": result}, seq=2, now=make.NOW)


def test_each_answer_has_so_many_told_as_prompts_tell(start: Start, world: World) -> None:
    attempts = trying(start, world)
    with pytest.raises(Refused, match="source"):
        attempts.begin("")
    first, second = (attempts.begin(SOURCE.format(n)) for n in range(2))
    assert attempts.report(first) is None
    end(first, Verdict.CORRECT, latency_ns=700.0)
    end(second, Verdict.COMPILE_ERROR, reason="no such name")
    assert "0.70 us" in (attempts.report(first) or "")
    assert "no such name" in (attempts.report(second) or "")
    with pytest.raises(Refused, match="all 2 attempts of this answer are used up"):
        attempts.begin(SOURCE.format(3))
    run = Run.objects.get()
    pause_run(run=run, user=run.user, now=make.NOW)
    with pytest.raises(Refused, match="has stopped"):
        attempts.begin(SOURCE.format(1))
    assert run.events.filter(kind="tried").count() == 2


def test_they_count_in_the_runs_budget_and_a_replay_knows_them(start: Start, world: World) -> None:
    attempts = trying(start, world, most=9, evaluations=3)
    keys = [attempts.begin(SOURCE.format(n)) for n in range(2)]  # beside the seed
    with pytest.raises(Refused, match="evaluations"):
        attempts.begin(SOURCE.format(3))
    run = Run.objects.get()
    assert (run.evaluations, budget.spent(load_history(run)).evaluations) == (3, 3)
    assert listed_evaluations(run.user).count() == 0
    for key in keys:
        end(key, Verdict.CORRECT, latency_ns=1.0)
    world.answer(run)
    run.calls.filter(status="SENT").update(status="FAILED", ended_at=make.NOW, error="gone")
    world.advance(run)
    assert (run.status, run.evaluations) == ("FINISHED", 3)
    assert run.best is not None
    assert run.best.number == 1  # an attempt is no candidate
    assert_rows_tell_what_the_log_tells(run)
    assert replay_run(run).differences == ()


def test_a_database_that_is_away_ends_no_command(
    start: Start, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = trying(start, world)
    key = attempts.begin(SOURCE.format(1))
    end(key, Verdict.CORRECT, latency_ns=700.0)

    def away(*_: object, **__: object) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(connection, "close", lambda: None)  # the test's transaction stays open
    with monkeypatch.context() as patch:
        patch.setattr(run_log, "lock", away)
        with pytest.raises(Refused, match="database is unavailable"):
            attempts.begin(SOURCE.format(2))
        patch.setattr(Evaluation.objects, "select_related", away)
        assert attempts.report(key) is None
    assert "0.70 us" in (attempts.report(key) or "")
