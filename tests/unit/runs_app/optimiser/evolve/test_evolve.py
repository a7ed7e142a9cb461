"""robust-kbench's Algorithm 1: its steps in order, its parameters, its context."""

from __future__ import annotations

from collections import Counter
from typing import Any

from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Ask, Place, Role
from runs_app.optimiser.evolve.config import ProfileMode
from tests.unit.runs_app.optimiser.evolve.driving import Failure, fenced
from tests.unit.runs_app.optimiser.evolve.papers import (
    a_run,
    broken,
    ending,
    fast,
    prompts_of,
    steps,
    wrong,
)

SMALL = {"generations": 3, "proposals": 4}


def improving(ask: Ask) -> str:
    """Every proposal is a little faster than all in its generation before."""
    if ask.role is Role.RECOMMEND:
        return f"1. advice of generation {ask.place.generation}"
    return fenced(fast(4000 - 100 * ask.place.generation - ask.place.slot))


def of_generation(run: Any, number: int) -> list[str]:
    """Steps that belong to a generation, in order."""
    mine = []
    for event in run.events:
        if isinstance(event, events.Asked) and event.place.generation == number:
            mine.append(event.role.value)
        elif isinstance(event, events.Measuring):
            place = run.history.candidates[event.candidate].place
            mine += [f"measure {event.mode.value}"] if place.generation == number else []
    return mine


def test_the_order_of_algorithm_1() -> None:
    """Seed, then in each generation: propose, measure, profile the best, recommend."""
    run = a_run("evolve", improving, parameters=SMALL, concurrent_asks=8)
    assert steps(run)[0] == "measure quick"
    for number in (1, 2):
        assert Counter(of_generation(run, number)[:8]) == {"propose": 4, "measure quick": 4}
        assert of_generation(run, number)[8:] == ["measure profile", "recommend"]
    assert Counter(of_generation(run, 3)) == {"propose": 4, "measure quick": 4}
    asked = [e.place.generation for e in run.events if isinstance(e, events.Asked)]
    assert asked == sorted(asked)
    for index, event in enumerate(run.events):  # a generation waits for the one before
        if isinstance(event, events.Measured) and event.mode.value == "quick":
            place = run.history.candidates[event.candidate].place
            later = (e.place.generation for e in run.events[:index] if isinstance(e, events.Asked))
            assert max(later, default=0) <= place.generation


def test_recommendations_reach_the_next_generation() -> None:
    run = a_run("evolve", improving, parameters=SMALL)
    proposals = prompts_of(run, Role.PROPOSE)
    assert "advice of generation 1" in proposals[4]
    assert "advice of generation 2" in proposals[8]
    asked, about = prompts_of(run, Role.RECOMMEND)[0], run.history.find(Role.RECOMMEND)[0].about
    assert ("exactly 3" in asked, "### Profile" in asked) == (True, True)
    assert run.history.candidates[about or 0].latency_ns == 4000 - 100 - 4
    run = a_run("evolve", improving, parameters=SMALL, profile=ProfileMode.NONE)
    assert ("measure profile" in steps(run), steps(run).count("recommend")) == (False, 2)
    assert "### Profile" not in prompts_of(run, Role.RECOMMEND)[0]
    none = a_run("evolve", improving, parameters={**SMALL, "recommendations": 0})
    assert not {"recommend", "measure profile"} & {*steps(none)}


def test_neither_failures_nor_repetitions_end_the_run() -> None:
    def speak(ask: Ask) -> str | Failure:
        if ask.place.generation == 2:
            kinds: list[str | Failure] = [Failure(), "no code", fenced(wrong()), fenced(broken())]
            return kinds[ask.place.slot - 1]
        return improving(ask)

    run = a_run("evolve", speak, parameters=SMALL)
    assert ending(run) == "all 3 generations are done"
    places = [Place(generation=2, slot=slot) for slot in (1, 2)]
    assert [len(run.history.find(Role.PROPOSE, place=place)) for place in places] == [3, 1]
    assert "advice of generation 1" in prompts_of(run, Role.PROPOSE)[-1]
    run = a_run("evolve", lambda _: fenced(fast(3000)), parameters=SMALL)
    assert (steps(run).count("measure quick"), steps(run).count("drop")) == (2, 11)
    assert ending(run)
