"""The optimizer keeps to budget and concurrency, and its history counts everything once."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.budget import spent
from runs_app.optimiser.evolve.commands import (
    Ask,
    Command,
    Edit,
    Finish,
    Measure,
    Message,
    Place,
    Prompt,
    Role,
)
from runs_app.optimiser.evolve.config import Budget, ModelSpec
from runs_app.optimiser.evolve.events import Answer, Evaluated
from runs_app.optimiser.evolve.history import CandidateState, History
from tests.unit.runs_app.optimiser.evolve.driving import (
    Drive,
    Failure,
    Scripted,
    World,
    a_config,
    a_problem,
    a_result,
    begin,
    fenced,
    kernel,
)

PROMPT = Prompt(name="test", version=1, messages=(Message(role="user", content="x" * 1000),))


def an_ask(**changes: Any) -> Ask:
    known = {"role": Role.PROPOSE, "prompt": PROMPT, "model": "small", "place": Place()}
    fields = {**known, "temperature": 1.0}
    return Ask(**{**fields, **changes})


def greedy(history: History) -> list[Command]:
    """Measures everything, and asks for more without end, of both models."""
    drafted = [c for c in history.candidates.values() if c.state is CandidateState.DRAFTED]
    commands: list[Command] = [Measure(candidate=c.number) for c in drafted]
    return [*commands, *(an_ask(model=name) for name in ("small", "large") * 4)]


def novel_world(seed: int = 0) -> World:
    """Every answer is another kernel; every fifth call fails."""
    numbers = itertools.count()

    def speak(_: Ask) -> str | Failure:
        number = next(numbers)
        return fenced(kernel(f"y[i] = {number} * x[i];")) if number % 5 else Failure()

    return World(speak=speak, seed=seed)


def a_run(budget: Budget, commands: Any = greedy, seed: int = 0, **changes: Any) -> Drive:
    config = a_config("autotune", budget=budget, **changes)
    return begin(a_problem(), config, novel_world(seed), Scripted(commands))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "budget",
    [
        Budget(usd=0.05),
        Budget(tokens=60_000),
        Budget(evaluations=17),
        Budget(usd=0.1, tokens=30_000),
    ],
    ids=repr,
)
def test_caps_hold_at_every_fact(budget: Budget, seed: int) -> None:
    run = a_run(budget, seed=seed)
    while not run.history.finished:
        run.step(1)
        now = spent(run.history)
        assert budget.usd is None or now.usd <= budget.usd + 1e-12
        assert budget.tokens is None or now.tokens <= budget.tokens
        assert budget.evaluations is None or now.evaluations <= budget.evaluations
    assert not run.world.pending
    assert run.end.by_budget
    assert "budget of" in run.end.reason
    assert len(run.history.questions) > 3


def test_calls_under_way_count_at_their_worst() -> None:
    run = a_run(Budget(usd=0.02), concurrent_asks=100)
    run.step(0)
    waiting = run.history.waiting()
    assert 1 < len(waiting) < 100
    assert sum(question.worst_usd for question in waiting) <= 0.02
    assert all(question.worst_tokens >= 1000 + 256 for question in waiting)
    run = a_run(Budget(usd=0.013), concurrent_asks=1)
    run.step(0)
    assert [question.worst_usd <= 0.013 for question in run.history.waiting()] == [True]  # shorter


def test_free_models_need_no_money_and_an_answer_may_be_as_short_as_its_asker_wants() -> None:
    def once(history: History) -> list[Command]:
        return [] if history.questions else [an_ask(max_tokens=100)]

    free = ModelSpec(name="small", price_in_usd=0, price_out_usd=0)
    run = a_run(Budget(usd=0), once, models=(free,))
    run.step(0)
    assert [asked.max_tokens for _, asked in run.world.asks.values()] == [100]


def test_concurrency_is_kept() -> None:
    run = a_run(Budget(evaluations=40), concurrent_asks=3, concurrent_evaluations=2).go()
    assert run.world.most_pending == {"asked": 3, "measuring": 2}
    with pytest.raises(DataError, match="concurrent_asks"):
        a_config(concurrent_asks=0)


def test_what_was_told_before_changes_nothing() -> None:
    run = a_run(Budget(evaluations=3))
    run.step(0)
    text = fenced(kernel("y[i] = 3 * x[i];"))
    event = events.Answered(ask=1, tokens_in=9, tokens_out=9, cost_usd=0.01, latency_s=1.0)
    answer = Answer(event=event, text=text)
    run.world.pending = [f for f in run.world.pending if getattr(f, "number", 0) != 1]
    run.record(run.optimizer.tell(answer))
    assert run.optimizer.tell(answer) == []
    run.step(0)
    measured = Evaluated(candidate=1, mode=Mode.QUICK, result=a_result(500.0))
    assert len(run.optimizer.tell(measured)) == 1
    before = spent(run.history), run.history.in_flight
    assert run.optimizer.tell(measured) == []
    assert (spent(run.history), run.history.in_flight) == before


def test_an_extension_lets_a_run_go_on_that_its_budget_ended_and_no_other() -> None:
    run = a_run(Budget(evaluations=5)).go()
    assert (run.history.told.begun, run.end.by_budget) == (5, True)
    run.extend(Budget(evaluations=9))
    assert (run.go().history.told.begun, run.end.by_budget) == (9, True)
    run = a_run(Budget(evaluations=5), lambda _: [Finish(reason="done")]).go()
    run.extend(Budget(evaluations=9))
    assert run.optimizer.ask() == []
    assert run.end == events.Finished(reason="done")


def test_a_run_ends_when_nothing_is_under_way() -> None:
    def commands(history: History) -> list[Command]:
        return [Finish(reason="enough"), an_ask()] if history.questions else [an_ask(), an_ask()]

    run = a_run(Budget(), commands)
    run.step(0)
    assert run.history.finished is None
    assert len(run.history.waiting()) == 4  # the end waits for answers; other commands do not
    run = a_run(Budget(), lambda h: [Finish(reason="enough")] if h.questions else [an_ask()]).go()
    assert run.events[-1] == run.end == events.Finished(reason="enough")
    run = a_run(Budget(), lambda _: []).go()
    assert run.events == [events.Finished(reason="the strategy has nothing more to ask")]


def asked(number: int, **changes: object) -> events.Asked:
    fields = {
        "number": number, "role": Role.PROPOSE, "model": "small", "temperature": 1.0,
        "place": Place(generation=number % 3, slot=number % 5, island=number % 2),
        "prompt": "p", "prompt_version": 1, "max_tokens": 300, "worst_usd": 0.5,
        "worst_tokens": 400,
    }  # fmt: skip
    return events.Asked(**{**fields, **changes})  # type: ignore[arg-type]


def drafted(number: int, **changes: object) -> events.Drafted:
    fields = {"number": number, "digest": f"d{number}", "edit": Edit.SEED, "place": Place()}
    return events.Drafted(**{**fields, **changes})  # type: ignore[arg-type]


def measured(candidate: int, latency_ns: float | None, mode: Mode = Mode.QUICK) -> events.Measured:
    verdict = "CORRECT" if latency_ns else "WRONG_RESULT"
    return events.Measured(
        candidate=candidate, mode=mode, verdict=verdict, reason="", latency_ns=latency_ns
    )


def a_history(*told: events.Event) -> History:
    history = History(World())
    for event in told:
        history.apply(event)
    return history


def test_correct_candidates_come_from_slow_to_fast() -> None:
    times = ((1, 50.0), (2, 70.0), (3, None), (4, 60.0), (5, 50.0))
    history = a_history(*map(drafted, range(1, 6)), *(measured(*each) for each in times))
    assert [c.number for c in history.correct()] == [2, 4, 1, 5]
    assert history.best is history.candidates[1]
    assert [c.number for c in history.settled] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("modes", [(Mode.QUICK, Mode.PROFILE), (Mode.PROFILE, Mode.QUICK)])
def test_a_profile_explains_a_time_and_does_not_replace_it(modes: tuple[Mode, ...]) -> None:
    history = a_history(drafted(1))
    for mode in modes:
        history.apply(events.Measuring(candidate=1, mode=mode))
        history.apply(measured(1, {Mode.QUICK: 50.0, Mode.PROFILE: 90.0}[mode], mode))
    assert [c.latency_ns for c in history.correct()] == [50.0]
    assert (len(history.settled), history.told.begun, history.in_flight) == (1, 2, 0)
