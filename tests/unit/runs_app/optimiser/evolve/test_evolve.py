"""robust-kbench's Algorithm 1: its steps in order, its parameters, its context."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import Any

import pytest

from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Ask, Place, Role
from runs_app.optimiser.evolve.config import ProfileMode, VerifierConfig
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


def test_without_a_seed_it_translates_first() -> None:
    def speak(ask: Ask) -> str:
        if ask.role is Role.TRANSLATE:
            return fenced(fast(4500) if ask.parents else broken())
        return "missing" if ask.role is Role.SUMMARISE else improving(ask)

    run = a_run("evolve", speak, parameters=SMALL, seed_source="")
    assert steps(run)[:6] == [
        "translate", "measure quick", "summarise", "translate", "measure quick", "propose",
    ]  # fmt: skip
    assert "4.50 us" in prompts_of(run, Role.PROPOSE)[0]
    run = a_run("evolve", lambda ask: fenced(wrong(ask.place.slot)), seed_source="")
    assert "no correct seed kernel after 10 tries" in ending(run)
    assert "propose" not in steps(run)


def shown(prompt: str) -> list[float]:
    """Times of the kernels that a prompt shows, in order, in ns."""
    return [1000 * float(time) for time in re.findall(r"^Overall: ([0-9.]+) us", prompt, re.M)]


def contexts(**parameters: Any) -> list[list[float]]:
    run = a_run("evolve", improving, parameters={**SMALL, **parameters})
    return [shown(prompt) for prompt in prompts_of(run, Role.PROPOSE)]


def test_context_is_least_to_most_if_not_told_otherwise() -> None:
    found = contexts()
    assert found[0] == [5000]
    assert found[4] == pytest.approx([5000, 3900, 3900, 3900, 3900], abs=10)
    assert found[8] == pytest.approx([3900, 3800, 3800, 3800, 3800], abs=10)
    assert all(times == sorted(times, reverse=True) for times in found)
    assert {len(times) for times in contexts(context=2)[4:]} == {2}
    assert {len(times) for times in contexts(context_order="best_only")} == {1}
    randoms = contexts(context_order="random", context=3, generations=6)[4:]
    assert {len(times) for times in randoms} == {3}
    assert any(times != sorted(times, reverse=True) for times in randoms)
    assert all(times == randoms[0] for times in randoms[:4])  # a generation sees the same


def test_kernels_without_room_lose_their_source_and_none_is_cut_into_another() -> None:
    def speak(ask: Ask) -> str:
        if ask.role is Role.RECOMMEND:
            return "advice"
        return fenced(fast(1000 + ask.place.slot) + f"// {'x' * 15_000} {ask.place.slot} ends\n")

    run = a_run("evolve", speak, parameters={"generations": 2, "proposals": 4})
    *_, last = prompts_of(run, Role.PROPOSE)
    kernels = last.partition("the slowest first")[2].partition("# What was tried")[0]
    shown = kernels.split("### Kernel ")[1:]
    times = [int(float(time) * 1000) for time in re.findall(r"Overall: ([\d.]+) us", kernels)]
    assert times == [5000, 1000, 1000, 1000, 1000]
    whole = [bool(re.search(r"x{15000} \d ends\n```", text)) for text in shown]
    assert whole == [False, False, False, True, True]
    assert "characters left out" not in kernels


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


def test_verification_comes_before_measuring_and_lets_four_through() -> None:
    numbers = itertools.count()

    def speak(ask: Ask) -> str:
        if ask.role in (Role.VERIFY, Role.REFLECT):
            assert ask.about is not None
            return f"FINAL VERIFICATION ANSWER: {ask.about % 2 == 0}"
        return improving(ask) if ask.role is Role.RECOMMEND else fenced(fast(3000 - next(numbers)))

    verifiers = VerifierConfig(names=("compile", "memory", "numerics"))
    run = a_run("evolve", speak, parameters={"generations": 2}, verifiers=verifiers)
    for number in (1, 2):
        mine = [x for x in of_generation(run, number) if "profile" not in x and x != "recommend"]
        assert Counter(mine) == {"propose": 8, "verify": 24, "reflect": 24, "measure quick": 4}
        assert mine[-4:] == ["measure quick"] * 4
    measured = [c.number for c in run.history.candidates.values() if c.measured and c.votes]
    assert all(number % 2 == 0 for number in measured)
    dropped = [c for c in run.history.candidates.values() if c.state.value == "dropped"]
    assert {c.reason for c in dropped} == {
        "the verifiers' score 0.00 is not among the best 4 of its generation"
    }


def test_the_order_in_which_answers_come_decides_nothing_of_the_prompts() -> None:
    def run(seed: int) -> dict[tuple[int, int], tuple[Any, ...]]:
        found = a_run("evolve", improving, parameters=SMALL, world_seed=seed, concurrent_asks=2)
        return {
            (ask.place.generation, ask.place.slot): (ask.model, ask.temperature, told(ask))
            for ask, _ in found.world.asks.values()
            if ask.role is Role.PROPOSE
        }

    def told(ask: Ask) -> str:
        """The prompt but for the numbers of kernels, which are given in order of arrival."""
        return re.sub(r"#\d+", "#", ask.prompt.messages[-1].content)

    assert run(1) == run(2)
