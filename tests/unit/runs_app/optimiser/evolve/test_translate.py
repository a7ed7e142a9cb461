"""Translation: sequential tries, and a call of its own that condenses the error in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpu_runner.data.codec import DataError
from runs_app.optimiser.evolve.commands import Ask, Role
from runs_app.optimiser.evolve.config import VerifierConfig
from tests.unit.runs_app.optimiser.evolve.driving import (
    Failure,
    World,
    a_config,
    a_problem,
    begin,
    fenced,
)
from tests.unit.runs_app.optimiser.evolve.papers import (
    a_run,
    answers,
    broken,
    ending,
    fast,
    prompts_of,
    steps,
    wrong,
)


def speak(*kernels: str) -> Callable[[Ask], str | Failure]:
    left = list(kernels)
    return lambda ask: (
        "A name is missing in line 3." if ask.role is Role.SUMMARISE else fenced(left.pop(0))
    )


def test_tries_one_after_another_with_a_summary_of_the_error_before_each_retry() -> None:
    run = a_run("translate", speak(broken(), wrong(), fast(900)), seed_source="")
    once = ["translate", "measure quick"]
    assert steps(run) == [*once, *["summarise", *once] * 2, "end"]
    assert ending(run) == "the translation works: kernel #3 is correct"
    assert run.world.most_pending == {"asked": 1, "measuring": 1}
    summary, _ = prompts_of(run, Role.SUMMARISE)
    assert "COMPILE_ERROR: as scripted" in summary
    assert "broken" in summary
    first, retry, _ = prompts_of(run, Role.TRANSLATE)
    assert "broken" not in first
    assert ("line 3." in retry, "broken" in retry, "COMPILE_ERROR" in retry) == (True, True, False)
    asked = run.history.find(Role.SUMMARISE)[0]
    assert (asked.about, asked.place) == (1, run.history.candidates[1].place)


def test_ten_tries_at_most_or_as_many_as_wanted() -> None:
    run = a_run("translate", speak(*map(broken, range(20))), seed_source="")
    assert (steps(run).count("translate"), steps(run).count("summarise")) == (10, 9)
    assert ending(run) == "no correct kernel in 10 tries"
    parameters = {"tries": 3, "summarise": False}
    run = a_run("translate", speak(*map(broken, range(9))), parameters=parameters, seed_source="")
    assert (steps(run).count("translate"), steps(run).count("summarise")) == (3, 0)
    assert "COMPILE_ERROR: as scripted" in prompts_of(run, Role.TRANSLATE)[1]


def test_it_may_go_on_after_the_first_correct_kernel() -> None:
    parameters = {"tries": 3, "stop_when_correct": False}
    kernels = speak(fast(900), fast(800), fast(700))
    run = a_run("translate", kernels, parameters=parameters, seed_source="")
    assert steps(run).count("translate") == 3
    assert "summarise" not in steps(run)
    assert run.best.latency_ns == 700.0


def test_a_correct_seed_needs_no_translation_and_a_broken_one_is_the_first_attempt() -> None:
    assert steps(a_run("translate", answers())) == ["measure quick", "end"]
    run = a_run("translate", speak(fast(900)), seed_source=broken())
    assert steps(run) == ["measure quick", "summarise", "translate", "measure quick", "end"]
    assert run.history.candidates[2].parents == (1,)


def test_an_unusable_or_repeated_answer_is_a_try_and_the_next_hears_why() -> None:
    run = a_run("translate", answers("no code", fenced(fast(900))), seed_source="")
    assert steps(run) == ["translate", "translate", "measure quick", "end"]
    assert "the answer has no code" in prompts_of(run, Role.TRANSLATE)[1]
    run = a_run("translate", speak(broken(), broken(), fast(900)), seed_source="")
    assert steps(run).count("measure quick") == 2
    assert "not measured: the same as #1" in prompts_of(run, Role.SUMMARISE)[1]


def test_a_failed_call_is_asked_again_three_times_in_all() -> None:
    calls = answers(Failure(), Failure(), fenced(fast(900)))
    run = a_run("translate", calls, seed_source="")
    assert steps(run)[:4] == ["translate", "translate", "translate", "measure quick"]
    run = a_run("translate", lambda _: Failure(), parameters={"tries": 2}, seed_source="")
    assert steps(run) == ["translate"] * 6 + ["end"]


def test_a_summary_that_fails_leaves_the_error_itself() -> None:
    def talk(ask: Ask) -> str | Failure:
        if ask.role is Role.SUMMARISE:
            return Failure()
        return fenced(broken() if len(ask.parents) == 0 else fast(900))

    run = a_run("translate", talk, seed_source="")
    assert steps(run).count("summarise") == 3
    assert "COMPILE_ERROR: as scripted" in prompts_of(run, Role.TRANSLATE)[1]
    assert run.best


def test_a_hard_verifier_can_send_a_kernel_back() -> None:
    def talk(ask: Ask) -> str:
        if ask.role is Role.VERIFY:
            return f"FINAL VERIFICATION ANSWER: {ask.about == 2}"
        return (
            "too risky" if ask.role is Role.SUMMARISE else fenced(fast(100 + 9 * len(ask.parents)))
        )

    verifiers = VerifierConfig(names=("memory",), soft=False, reflect=False)
    run = a_run("translate", talk, seed_source="", verifiers=verifiers)
    assert steps(run) == [
        "translate", "verify", "drop", "summarise", "translate", "verify", "measure quick", "end",
    ]  # fmt: skip


def test_it_needs_a_language_model_and_a_temperature() -> None:
    with pytest.raises(DataError, match="models: Translation needs"):
        begin(a_problem(), a_config("translate", models=()), World())
    with pytest.raises(DataError, match="temperatures"):
        begin(a_problem(), a_config("translate", temperatures=()), World())
