"""A stored run, replayed without a network, makes the same moves at the same places."""

from __future__ import annotations

import itertools
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from gpu_runner.data import codec
from runs_app.evolve import facts
from runs_app.evolve.budget import wall_time_refusal
from runs_app.evolve.config import Budget, VerifierConfig
from runs_app.evolve.facts import Fact
from runs_app.evolve.history import History
from runs_app.evolve.optimizer import Optimizer
from runs_app.evolve.replay import replay
from runs_app.evolve.strategies import make_strategy
from runs_app.evolve.trials import Trials
from runs_app.evolve.wishes import Message
from tests.unit.runs_app.evolve.driving import Drive, World, a_config, a_problem, begin
from tests.unit.runs_app.evolve.worlds import Landscape, talking_world, tunable

EVERY: dict[str, dict[str, Any]] = {
    "autotune": {"evaluations": 30},
    "islands": {"proposals": 40, "migration_interval": 5},
    "evolve": {"generations": 3, "proposals": 5},
    "fsr": {"n": 3, "depth": 3},
    "cudamaster": {},
    "translate": {"tries": 4, "stop_when_correct": False},
}


def a_run(name: str, seed: int, **changes: Any) -> Drive:
    seeded = tunable() if name == "autotune" else a_problem().seed_source
    world = talking_world(seed)
    if name == "autotune":
        world = World(judge=Landscape(seed).judge, seed=seed)
    budget = Budget(usd=5.0, evaluations=60)
    config = a_config(
        name, **{"seed": seed, "parameters": EVERY[name], "budget": budget, **changes}
    )
    return begin(a_problem(seed_source=seeded), config, world)


def differences(run: Drive, stored: list[Fact]) -> list[Any]:
    optimizer = run.optimizer
    return list(replay(optimizer.problem, optimizer.config, stored, run.world).differences)


@pytest.mark.parametrize("verifiers", [(), ("compile", "numerics")], ids=["plain", "verified"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", EVERY)
def test_a_replay_makes_every_fact_again(name: str, seed: int, verifiers: tuple[str, ...]) -> None:
    run = a_run(name, seed, verifiers=VerifierConfig(names=verifiers)).go()
    assert run.history.finished is not None
    stored = [facts.decode(facts.kind_of(f), codec.encode(f)) for f in run.facts]
    report = replay(run.optimizer.problem, run.optimizer.config, stored, run.world)
    assert report.differences == ()
    assert report.facts == len(stored) > 5
    assert report.steps > 3


@pytest.mark.parametrize("name", EVERY)
def test_a_run_with_lost_evaluations_replays_and_restores(name: str) -> None:
    def flaky(run: Drive, every: int) -> Drive:
        judge, count = run.world.judge, itertools.count(1)
        run.world.judge = lambda source, mode: judge(source, mode) if next(count) % every else None
        return run

    for every in (1, 2, 3):
        whole = flaky(a_run(name, 9), every).go()
        lost = [f for f in whole.facts if getattr(f, "verdict", "") == "SYSTEM_ERROR"]
        assert lost
        assert differences(whole, whole.facts) == []
        run = flaky(a_run(name, 9), every)
        problem, config = run.optimizer.problem, run.optimizer.config
        run.step(0)
        while run.world.pending:
            run.optimizer = Optimizer(problem, config, restored(run.history, run.facts, run.world))
            run.step(run.world.random.choice((1, 1, 1, 2, 3)))
        assert run.facts == whole.facts


@pytest.mark.parametrize("name", EVERY)
def test_a_run_resumed_from_its_facts_goes_on_as_if_nothing_had_been(name: str) -> None:
    whole = a_run(name, 5).go()
    parted = a_run(name, 5).go(facts_at_most=len(whole.facts) // 2)
    optimizer = parted.optimizer
    history = folded(parted.facts, parted.world)
    parted.optimizer = Optimizer(optimizer.problem, optimizer.config, history)
    assert parted.go().facts == whole.facts


@pytest.mark.parametrize("name", EVERY)
def test_a_run_restored_from_rows_before_every_step_decides_the_same(name: str) -> None:
    whole = a_run(name, 6).go()
    run = a_run(name, 6)
    problem, config = run.optimizer.problem, run.optimizer.config
    run.step(0)
    while run.world.pending:
        run.optimizer = Optimizer(problem, config, restored(run.history, run.facts, run.world))
        run.step(run.world.random.choice((1, 1, 1, 2, 3)))
    assert run.facts == whole.facts


@pytest.mark.parametrize("name", EVERY)
def test_strategies_keep_no_state(name: str) -> None:
    run = a_run(name, 8)
    problem, config = run.optimizer.problem, run.optimizer.config
    run.step(0)
    for _ in range(30):
        used, fresh = run.optimizer.strategy, make_strategy(problem, config)
        assert used.ask(run.history) == fresh.ask(run.history) == used.ask(run.history)
        run.step(1)


def folded(stored: list[Fact], world: World) -> History:
    """The history after those facts."""
    history = History(world)
    for fact in stored:
        history.apply(fact)
    return history


def restored(history: History, stored: list[Fact], world: World) -> History:
    """A history from copies of its parts, as the site makes one from rows."""
    trials = Trials()
    for fact in stored:
        trials.apply(fact)
    again = History(world)
    again.restore(
        deepcopy(list(history.candidates.values())),
        deepcopy(list(history.questions.values())),
        trials=trials,
        best=history.best.number if history.best else None,
        finished=history.finished,
        budget=history.budget,
    )
    return again


def test_an_extension_and_the_end_of_time_are_taken_from_the_log() -> None:
    run = a_run("islands", 1, budget=Budget(evaluations=6)).go()
    run.extend(Budget(evaluations=20, wall_time_s=60))
    run.go(facts_at_most=len(run.facts) + 12)
    over = facts.Finished(reason=wall_time_refusal(Budget(wall_time_s=60), 61), by_budget=True)
    run.history.apply(over)
    run.facts.append(over)
    while run.world.pending:
        run.step(1)
    assert run.facts[-1] != over
    assert differences(run, run.facts) == []


def change(stored: list[Fact], kind: type[Any], **fields: Any) -> tuple[list[Fact], int]:
    """The facts with the fifth of a kind changed, and its place."""
    places = [at for at, fact in enumerate(stored) if isinstance(fact, kind)]
    at = places[4]
    return [*stored[:at], replace(stored[at], **fields), *stored[at + 1 :]], at


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (facts.Asked, {"model": "another"}),
        (facts.Asked, {"worst_usd": 0.0}),
        (facts.Drafted, {"digest": "0" * 64}),
        (facts.Drafted, {"parents": (1, 1, 1)}),
        (facts.Answered, {"problem": "it was rude"}),
        (facts.Measuring, {"candidate": 1}),
    ],
)
def test_a_changed_fact_is_found_where_it_is(kind: type[Any], fields: dict[str, Any]) -> None:
    run = a_run("islands", 2).go()
    stored, at = change(run.facts, kind, **fields)
    found = differences(run, stored)
    assert found[0].at == at


def test_a_changed_time_shows_in_what_follows() -> None:
    run = a_run("islands", 2).go()
    stored, at = change(run.facts, facts.Measured, latency_ns=1.0)
    found = differences(run, stored)
    assert found
    assert found[0].at > at


def test_a_missing_and_an_invented_fact_are_found() -> None:
    run = a_run("evolve", 2).go()
    places = [at for at, fact in enumerate(run.facts) if isinstance(fact, facts.Measuring)]
    assert differences(run, [*run.facts[: places[1]], *run.facts[places[1] + 1 :]])
    invented = facts.Measured(candidate=1, mode="quick", verdict="CORRECT", reason="")
    assert differences(run, [*run.facts, invented])[0].at == len(run.facts)


def test_a_changed_prompt_or_source_is_found() -> None:
    run = a_run("islands", 3).go()
    messages = run.world.prompts[7]
    run.world.prompts[7] = (Message(role="user", content="ignore all that"), *messages[1:])
    assert [d.stored for d in differences(run, run.facts)] == ["prompt of ask 7"]
    run.world.prompts[7] = messages
    assert differences(run, run.facts) == []
    last = max(run.world.sources)
    run.world.sources[last] += "// one more line\n"
    assert [d.stored for d in differences(run, run.facts)] == [f"source of candidate {last}"]
