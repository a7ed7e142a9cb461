"""A stored run, replayed without a network, makes the same transitions at the same places."""

from __future__ import annotations

import itertools
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from gpu_runner.data import codec
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.budget import wall_time_refusal
from runs_app.optimiser.evolve.commands import Message
from runs_app.optimiser.evolve.config import Briefing, Budget, KnownTimes, VerifierConfig
from runs_app.optimiser.evolve.evaluations import Evaluations
from runs_app.optimiser.evolve.events import Event
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.optimizer import Optimizer
from runs_app.optimiser.evolve.replay import replay
from tests.unit.runs_app.optimiser.evolve.driving import Drive, World, a_config, a_problem, begin
from tests.unit.runs_app.optimiser.evolve.worlds import Landscape, talking_world, tunable

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


def differences(run: Drive, stored: list[Event]) -> list[Any]:
    optimizer = run.optimizer
    return list(replay(optimizer.problem, optimizer.config, stored, run.world).differences)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("verifiers", [(), ("compile", "numerics")], ids=["plain", "verified"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", EVERY)
def test_a_replay_makes_every_fact_again(name: str, seed: int, verifiers: tuple[str, ...]) -> None:
    run = a_run(name, seed, verifiers=VerifierConfig(names=verifiers)).go()
    assert run.end
    stored = [events.decode(events.kind_of(f), codec.encode(f)) for f in run.events]
    report = replay(run.optimizer.problem, run.optimizer.config, stored, run.world)
    assert report.differences == ()
    assert report.events == len(stored) > 5
    assert report.steps > 3


@pytest.mark.parametrize("name", EVERY)
def test_a_run_with_lost_evaluations_replays_and_restores(name: str) -> None:
    def flaky(run: Drive, every: int) -> Drive:
        judge, count = run.world.judge, itertools.count(1)
        run.world.judge = lambda source, mode: judge(source, mode) if next(count) % every else None
        return run

    for every in (1, 3):
        whole = flaky(a_run(name, 9), every).go()
        assert any(getattr(f, "verdict", "") == "SYSTEM_ERROR" for f in whole.events)
        assert differences(whole, whole.events) == []
        run = flaky(a_run(name, 9), every)
        problem, config = run.optimizer.problem, run.optimizer.config
        run.step(0)
        while run.world.pending:
            run.optimizer = Optimizer(problem, config, restored(run.history, run.events, run.world))
            run.step(run.world.random.choice((1, 1, 1, 2, 3)))
        assert run.events == whole.events


def restored(history: History, stored: list[Event], world: World) -> History:
    """A history from copies of its parts, as the site makes one from rows."""
    evaluations = Evaluations()
    for event in stored:
        evaluations.apply(event)
    again = History(world)
    again.restore(
        deepcopy(list(history.candidates.values())),
        deepcopy(list(history.questions.values())),
        evaluations=evaluations,
        best=history.best.number if history.best else None,
        finished=history.finished,
        extension=next((e for e in reversed(stored) if isinstance(e, events.Extended)), None),
    )
    for event in reversed(stored):
        if isinstance(event, events.Briefed):
            again.apply(event)
            break
    return again


def test_what_is_learnt_stands_in_later_prompts_and_is_taken_from_the_log() -> None:
    run = a_run("evolve", 3)
    problem, config = run.optimizer.problem, run.optimizer.config
    run.go(events_at_most=20)
    known = KnownTimes(workload="n1024", baselines_ns={"eager": 4000.0}, limit_ns=100.0)
    run.learn(Briefing(known=(known,), limit_source="estimates"))
    at = len(run.events)
    run.go()
    asked = [event.number for event in run.events[:at] if isinstance(event, events.Asked)]
    told = {ask: "eager 4.00 us" in str(text) for ask, text in run.world.prompts.items()}
    assert {ask for ask, is_told in told.items() if not is_told} == set(asked)
    assert any(told.values())
    assert replay(problem, config, run.events, run.world).differences == ()


def test_an_extension_and_the_end_of_time_are_taken_from_the_log() -> None:
    run = a_run("islands", 1, budget=Budget(evaluations=6)).go()
    run.extend(Budget(evaluations=20, wall_time_s=60))
    run.go(events_at_most=len(run.events) + 12)
    over = events.Finished(reason=wall_time_refusal(Budget(wall_time_s=60), 61), by_budget=True)
    run.history.apply(over)
    run.events.append(over)
    while run.world.pending:
        run.step(1)
    assert run.events[-1] != over
    assert differences(run, run.events) == []


def change(stored: list[Event], kind: type[Any], **fields: Any) -> tuple[list[Event], int]:
    """The events with the fifth of a kind changed, and its place."""
    places = [at for at, event in enumerate(stored) if isinstance(event, kind)]
    at = places[4]
    return [*stored[:at], replace(stored[at], **fields), *stored[at + 1 :]], at


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (events.Asked, {"model": "another"}),
        (events.Asked, {"worst_usd": 0.0}),
        (events.Drafted, {"digest": "0" * 64}),
        (events.Drafted, {"parents": (1, 1, 1)}),
        (events.Answered, {"problem": "it was rude"}),
        (events.Measuring, {"candidate": 1}),
        (events.Measured, {"latency_ns": 1.0}),
    ],
)
def test_a_changed_fact_is_found_where_it_is(kind: type[Any], fields: dict[str, Any]) -> None:
    run = a_run("islands", 2).go()
    stored, at = change(run.events, kind, **fields)
    found = differences(run, stored)[0].at
    assert found > at if kind is events.Measured else found == at  # a time shows in what follows


def test_a_missing_and_an_invented_fact_are_found() -> None:
    run = a_run("evolve", 2).go()
    places = [at for at, event in enumerate(run.events) if isinstance(event, events.Measuring)]
    assert differences(run, [*run.events[: places[1]], *run.events[places[1] + 1 :]])
    invented = events.Measured(candidate=1, mode="quick", verdict="CORRECT", reason="")
    assert differences(run, [*run.events, invented])[0].at == len(run.events)


def test_a_changed_prompt_or_source_is_found() -> None:
    run = a_run("islands", 3).go()
    messages = run.world.prompts[7]
    run.world.prompts[7] = (Message(role="user", content="ignore all that"), *messages[1:])
    assert [d.stored for d in differences(run, run.events)] == ["prompt of ask 7"]
    run.world.prompts[7] = messages
    assert differences(run, run.events) == []
    last = max(run.world.sources)
    run.world.sources[last] += "// one more line\n"
    assert [d.stored for d in differences(run, run.events)] == [f"source of candidate {last}"]
