"""What holds for every strategy of the papers, whatever language models and hardware do."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Ask, Role
from runs_app.optimiser.evolve.config import VerifierConfig
from runs_app.optimiser.evolve.evaluations import MAX_LOSSES
from tests.unit.runs_app.optimiser.evolve.driving import (
    Failure,
    World,
    a_config,
    a_problem,
    begin,
    fenced,
    kernel,
)
from tests.unit.runs_app.optimiser.evolve.papers import broken, fast, judge, wrong

PAPERS = ("translate", "evolve", "fsr", "cudamaster")
VERIFIERS = {
    "none": VerifierConfig(),
    "soft": VerifierConfig(names=("compile", "memory"), survivors=2),
    "hard": VerifierConfig(names=("numerics",), soft=False),
}


def chaos(seed: int, *, seed_source: str) -> tuple[World, Any]:
    """Models that fail, chatter, repeat themselves and vote at random; evaluations get lost."""
    dice = random.Random(seed)

    def speak(ask: Ask) -> str | Failure:
        source = dice.choice([fast(dice.randrange(100, 9000)), fast(777), wrong(), broken()])
        return dice.choice(
            [
                Failure(), "", "I cannot help with that.", "Hm. " * 99, "OK", fenced(source),
                fenced(source), fenced(source), "```cpp\n" + source[:-9], "FINAL VERIFICATION "
                f"ANSWER: {dice.choice(('True', 'False'))}",
            ]
        )  # fmt: skip

    def hardware(source: str, mode: Mode) -> EvaluationResult | None:
        return None if dice.random() < 0.1 else judge(source, mode)

    return World(judge=hardware, speak=speak, seed=seed), a_problem(seed_source=seed_source)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("strategy", "verifiers", "seed"), list(itertools.product(PAPERS, VERIFIERS, range(4)))
)
def test_it_always_ends_by_itself(strategy: str, verifiers: str, seed: int) -> None:
    sources = (fast(5000), "", broken(), wrong())
    world, problem = chaos(seed, seed_source=sources[seed])
    config = a_config(strategy, seed=seed, verifiers=VERIFIERS[verifiers])
    run = begin(problem, config, world).go(events_at_most=20_000)
    finished = run.history.finished
    assert finished is not None
    assert finished.reason != "the strategy has nothing more to ask"
    assert not finished.by_budget
    begun = [(f.candidate, f.mode) for f in run.events if isinstance(f, events.Measuring)]
    assert max(Counter(begun).values(), default=0) <= MAX_LOSSES
    told = [
        (f.candidate, f.mode)
        for f in run.events
        if isinstance(f, events.Measured) and f.verdict != Verdict.SYSTEM_ERROR
    ]
    assert len(told) == len(set(told))
    for question in run.history.questions.values():
        assert len(run.history.find(
            question.role, place=question.place,
            about=question.about, verifier=question.verifier or None,
        )) <= 3  # fmt: skip


TUNABLE = "constexpr int A = 1;  // knob: 1 2 3\n" + kernel()
BAD = {
    "autotune": {"evaluations": 0, "explore": 1.5, "patience": 0, "sample": -1, "evaluation": 3},
    "cudamaster": {"r": 0, "d": -1, "keep": "all", "R": 3},
    "evolve": {"generations": 0, "proposals": 0, "context": -1, "context_order": "worst"},
    "fsr": {"n": 0, "depth": 0, "history": -1, "N": 5},
    "islands": {"islands": 0, "diff": -1.0, "floor_stop": 1.5, "similarity": 2.0, "colour": 1},
    "translate": {"tries": 0, "summarise": "3", "attempts": 3},
}


TOO_LARGE = [
    ("evolve", {"proposals": 101}, "proposals"),
    ("evolve", {"generations": 101, "proposals": 100}, "generations"),
    ("fsr", {"n": 5, "depth": 2001}, "n"),
    ("cudamaster", {"r": 1000, "d": 11}, "r"),
    ("islands", {"proposals": 10_001}, "proposals"),
    ("islands", {"diff": float("inf")}, "diff"),
    ("islands", {"diff": 0.0, "rewrite": 0.0, "crossover": 0.0}, "diff"),
    ("translate", {"tries": 1001}, "tries"),
    ("autotune", {"evaluations": 10_001}, "evaluations"),
    ("autotune", {"explore": float("nan")}, "explore"),
]


@pytest.mark.parametrize(
    ("strategy", "parameters", "field"),
    [(s, dict([bad]), bad[0]) for s, every in BAD.items() for bad in every.items()] + TOO_LARGE,
)
def test_a_bad_parameter_is_named(strategy: str, parameters: dict[str, Any], field: str) -> None:
    config = a_config(strategy, parameters=parameters)
    with pytest.raises(DataError, match=rf"parameters\.{field}\b"):
        begin(a_problem(seed_source=TUNABLE), config, World())


LOST = "0 * lost"


@pytest.mark.parametrize("strategy", ["translate", "fsr", "cudamaster"])
def test_a_lost_evaluation_is_no_error_of_the_kernel(strategy: str) -> None:
    """The first kernel written is lost with its runner; nobody is asked to mend it."""
    written = itertools.count()

    def speak(ask: Ask) -> str:
        if ask.role in (Role.PLAN, Role.COMPILE):
            return "OK"
        number = next(written)
        return fenced(fast(900 - number) if number else kernel(f"y[i] = {LOST};"))

    world = World(
        judge=lambda source, mode: None if LOST in source else judge(source, mode), speak=speak
    )
    problem = a_problem(seed_source=fast(5000) if strategy == "cudamaster" else "")
    config = a_config(strategy, parameters={"n": 1, "depth": 2} if strategy == "fsr" else {})
    run = begin(problem, config, world).go()
    assert not run.history.find(Role.SUMMARISE, Role.DEBUG)
    assert run.best
    roles = {number: question.role for number, question in run.history.questions.items()}
    first = next(number for number, role in roles.items() if role != Role.PLAN)
    later = [number for number, role in roles.items() if number > first and role != Role.COMPILE]
    assert later
    for number in later:
        assert LOST not in "".join(message.content for message in run.world.prompts[number])
