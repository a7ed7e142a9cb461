"""The steps of CUDAMaster, FSR and Translation, in their order, and what each step is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from gpu_runner.data.codec import DataError
from runs_app.optimiser.evolve.commands import Ask, Role
from runs_app.optimiser.evolve.config import ProfileMode
from runs_app.optimiser.evolve.history import CandidateState
from tests.unit.runs_app.optimiser.evolve.driving import (
    Drive,
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

ROUND = ["plan", "code", "compile", "measure profile"]


def good(ask: Ask) -> str:
    """Plans, codes a faster kernel each round, and agrees to the code."""
    match ask.role:
        case Role.PLAN:
            return f"Strategy {ask.place.generation}: tiles."
        case Role.COMPILE:
            return "OK"
        case _:
            return fenced(fast(4000 - 100 * ask.place.generation - ask.place.slot))


def test_three_rounds_of_the_papers_steps_each_told_what_it_needs() -> None:
    run = a_run("cudamaster", good)
    assert steps(run) == ["measure profile", *ROUND * 3, "end"]
    assert ending(run) == "all 3 rounds are done: kernel #4 is the fastest kept"
    assert run.world.most_pending == {"asked": 1, "measuring": 1}
    first, second, third = prompts_of(run, Role.PLAN)
    assert "dram_throughput_pct: 80" in first
    assert "compute_throughput_pct" not in first
    assert "Round 1" not in first
    assert "Round 1: Strategy 1: tiles. -> #2 kernel: correct, 3.90 us" in second
    assert "Round 2" in third
    assert "Overall: 3.90 us" in second
    coder = prompts_of(run, Role.CODE)[1]
    assert "Strategy 2: tiles." in coder
    assert fast(4000 - 100 - 1).strip() in coder
    assert "### Profile" not in coder
    full = a_run("cudamaster", good, profile=ProfileMode.FULL)
    assert "compute_throughput_pct: 10" in prompts_of(full, Role.PLAN)[0]


def failing(attempts: int) -> Callable[[Ask], str]:
    """The coder and so many debuggers fail; what they mend is told by the slot."""

    def speak(ask: Ask) -> str:
        if ask.role is Role.CODE:
            return fenced(broken(ask.place.generation))
        if ask.role is Role.DEBUG and ask.place.slot - 3 < attempts:
            return fenced(wrong(10 * ask.place.generation + ask.place.slot))
        return good(ask)

    return speak


def test_debugging_up_to_three_times() -> None:
    one_round = {"r": 1}
    run = a_run("cudamaster", failing(1), parameters=one_round)
    assert steps(run)[1:] == [*ROUND, *["debug", "measure profile"] * 2, "end"]
    mended = run.history.candidates[4]
    assert (mended.parents, mended.is_correct) == ((3,), True)
    assert "COMPILE_ERROR: as scripted" in prompts_of(run, Role.DEBUG)[0]
    assert "WRONG_RESULT: as scripted" in prompts_of(run, Role.DEBUG)[1]
    assert "Strategy 1: tiles." in prompts_of(run, Role.DEBUG)[1]
    lost = a_run("cudamaster", failing(9), parameters=one_round)
    assert steps(lost)[1:] == [*ROUND, *["debug", "measure profile"] * 3, "end"]
    assert ending(lost) == "all 1 rounds are done: kernel #1 is the fastest kept"
    never = a_run("cudamaster", failing(1), parameters={"r": 2, "d": 0})
    assert "debug" not in steps(never)
    assert "-> #2 kernel: COMPILE_ERROR" in prompts_of(never, Role.PLAN)[1]
    assert never.history.find(Role.CODE)[1].parents == (1,)


def test_the_compiler_may_change_the_source() -> None:
    def said(source: str) -> Drive:
        def speak(ask: Ask) -> str:
            return source if ask.role is Role.COMPILE else good(ask)

        return a_run("cudamaster", speak, parameters={"r": 1})

    run = said(fenced(fast(2000)))
    assert steps(run)[1:] == ["plan", "code", "compile", "drop", "measure profile", "end"]
    coded, compiled = run.history.candidates[2], run.history.candidates[3]
    assert coded.state is CandidateState.DROPPED
    assert coded.reason == "the compiler role changed it: see #3"
    assert (compiled.is_correct, compiled.parents) == (True, (1,))
    assert "g++ -O3" in prompts_of(run, Role.COMPILE)[0]
    same = said(fenced("// checked\n" + fast(4000 - 100 - 1)))
    assert steps(same)[1:] == ["plan", "code", "compile", "drop", "measure profile", "end"]
    assert same.history.candidates[2].is_correct
    assert steps(said("Hm."))[1:] == [*ROUND, "end"]
    without = a_run("cudamaster", good, parameters={"r": 1, "compiler": False})
    assert "compile" not in steps(without)


SMALL = {"n": 3, "depth": 3}


def deeper(ask: Ask) -> str:
    """Slot 2 is the fastest of its depth, and each depth is faster; slot 1 does not build."""
    depth, slot = ask.place.generation, ask.place.slot
    if slot == 1:
        return fenced(broken(depth))
    return fenced(fast(4000 - 500 * depth + 10 * slot), title=f"d{depth}s{slot}")


def messages(run: Drive, depth: int) -> list[tuple[str, str]]:
    number = run.history.find(generation=depth)[0].number
    return [(message.role, message.content) for message in run.world.prompts[number]]


def test_a_depth_is_timed_before_the_next_and_its_fastest_goes_on_with_the_dialogue() -> None:
    run = a_run("fsr", deeper, parameters=SMALL, seed_source="")
    begun = steps(run)
    for depth in range(3):
        assert Counter(begun[6 * depth : 6 * depth + 6]) == {"propose": 3, "measure quick": 3}
    assert begun[18:] == ["end"]
    first, second, third = (messages(run, depth) for depth in (1, 2, 3))
    assert [role for role, _ in first] == ["system", "user"]
    assert "# Where it runs\n\na CPU:" in first[1][1]
    assert [role for role, _ in second] == ["system", "user", "assistant", "user"]
    assert run.history.candidates[run.history.find(generation=2)[0].parents[0]].title == "d1s2"
    assert fast(4000 - 500 + 20).strip() in second[2][1]
    assert "less execution time" in second[3][1]
    assert "Overall: 3.52 us" in second[3][1]
    assert [role for role, _ in third] == ["system", *["user", "assistant"] * 2, "user"]
    assert third[:3] == second[:3]
    assert "d1s3" in third[3][1]


def test_if_none_passes_code_and_error_go_on() -> None:
    def failing(ask: Ask) -> str:
        if ask.place.generation == 1:
            return fenced([broken(), wrong(), broken(1)][ask.place.slot - 1])
        return deeper(ask)

    run = a_run("fsr", failing, parameters=SMALL, seed_source="")
    second = messages(run, 2)
    assert wrong().strip() in second[2][1]  # it compiles: nearer to working than the others
    assert "did not pass" in second[3][1]
    assert "WRONG_RESULT: as scripted" in second[3][1]
    assert run.best


def test_unusable_answers_and_failed_calls_leave_gaps_only() -> None:
    def talk(ask: Ask) -> str | Failure:
        if ask.place.generation == 1:
            return "no code" if ask.place.slot == 1 else Failure()
        return deeper(ask)

    run = a_run("fsr", talk, parameters=SMALL, seed_source="")
    assert [role for role, _ in messages(run, 2)] == ["system", "user"]
    assert run.best
    nothing = a_run("fsr", lambda _: "no", parameters=SMALL, seed_source="")
    assert ending(nothing) == "the search reached depth 3: no kernel passed"


def translating(*kernels: str) -> Callable[[Ask], str | Failure]:
    left = list(kernels)
    return lambda ask: (
        "A name is missing in line 3." if ask.role is Role.SUMMARISE else fenced(left.pop(0))
    )


def test_tries_one_after_another_with_a_summary_of_the_error_before_each_retry() -> None:
    run = a_run("translate", translating(broken(), wrong(), fast(900)), seed_source="")
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


def test_a_correct_seed_needs_no_translation_and_a_broken_one_is_the_first_attempt() -> None:
    assert steps(a_run("translate", answers())) == ["measure quick", "end"]
    run = a_run("translate", translating(fast(900)), seed_source=broken())
    assert steps(run) == ["measure quick", "summarise", "translate", "measure quick", "end"]
    assert run.history.candidates[2].parents == (1,)


def test_an_unusable_or_repeated_answer_is_a_try_and_the_next_hears_why() -> None:
    run = a_run("translate", answers("no code", fenced(fast(900))), seed_source="")
    assert steps(run) == ["translate", "translate", "measure quick", "end"]
    assert "the answer has no code" in prompts_of(run, Role.TRANSLATE)[1]
    run = a_run("translate", translating(broken(), broken(), fast(900)), seed_source="")
    assert steps(run).count("measure quick") == 2
    assert "not measured: the same as #1" in prompts_of(run, Role.SUMMARISE)[1]


def test_a_failed_call_is_asked_again_three_times_in_all() -> None:
    calls = answers(Failure(), Failure(), fenced(fast(900)))
    run = a_run("translate", calls, seed_source="")
    assert steps(run)[:4] == ["translate", "translate", "translate", "measure quick"]
    run = a_run("translate", lambda _: Failure(), parameters={"tries": 2}, seed_source="")
    assert steps(run) == ["translate"] * 6 + ["end"]


def test_it_needs_a_language_model_and_a_temperature() -> None:
    with pytest.raises(DataError, match="models: Translation needs"):
        begin(a_problem(), a_config("translate", models=()), World())
    with pytest.raises(DataError, match="temperatures"):
        begin(a_problem(), a_config("translate", temperatures=()), World())
