"""CUDAMaster: profile, plan, code, compile, run, debug, keep, in R rounds."""

from __future__ import annotations

from collections.abc import Callable

from runs_app.optimiser.evolve.commands import Ask, Role
from runs_app.optimiser.evolve.config import ProfileMode
from runs_app.optimiser.evolve.history import CandidateState
from tests.unit.runs_app.optimiser.evolve.driving import Drive, Failure, a_problem, fenced
from tests.unit.runs_app.optimiser.evolve.papers import (
    a_run,
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
    assert ending(run) == "all 3 rounds are done: kernel #4 is the fastest one kept"
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


def test_without_a_profile_kernels_are_measured_alone() -> None:
    run = a_run("cudamaster", good, profile=ProfileMode.NONE)
    assert steps(run) == [
        "measure quick", *["plan", "code", "compile", "measure quick"] * 3, "end",
    ]  # fmt: skip
    assert "### Profile" not in prompts_of(run, Role.PLAN)[0]


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
    assert ending(lost) == "all 1 rounds are done: kernel #1 is the fastest one kept"
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


def test_valid_kernels_are_kept_as_in_the_paper_or_only_faster_ones() -> None:
    def slower(ask: Ask) -> str:
        is_code = ask.role is Role.CODE
        return fenced(fast(6000 + ask.place.generation)) if is_code else good(ask)

    valid = a_run("cudamaster", slower, parameters={"r": 2})
    assert [q.parents for q in valid.history.find(Role.CODE)] == [(1,), (2,)]
    assert ending(valid).endswith("kernel #1 is the fastest one kept")
    faster = a_run("cudamaster", slower, parameters={"r": 2, "keep": "faster"})
    assert [q.parents for q in faster.history.find(Role.CODE)] == [(1,), (1,)]


def test_a_repeated_kernel_goes_to_the_debugger() -> None:
    def speak(ask: Ask) -> str:
        return fenced(a_problem().seed_source) if ask.role is Role.CODE else good(ask)

    run = a_run("cudamaster", speak, parameters={"r": 1})
    assert steps(run)[1:] == ["plan", "code", "drop", "debug", "measure profile", "end"]
    assert "not measured: the same as #1" in prompts_of(run, Role.DEBUG)[0]


def test_without_a_seed_it_translates_first() -> None:
    run = a_run("cudamaster", good, parameters={"r": 1}, seed_source="")
    assert steps(run) == ["translate", "measure quick", "measure profile", *ROUND, "end"]
    none = a_run("cudamaster", lambda _: fenced(wrong()), seed_source="", parameters={"tries": 2})
    assert ending(none) == "no correct seed kernel after 2 tries"


def test_calls_that_fail_cost_a_round_at_most() -> None:
    def plan_fails(ask: Ask) -> str | Failure:
        lost = ask.role is Role.PLAN and ask.place.generation == 1
        return Failure() if lost else good(ask)

    run = a_run("cudamaster", plan_fails, parameters={"r": 2})
    assert steps(run)[1:] == ["plan"] * 3 + ROUND + ["end"]
    assert "no strategy" in prompts_of(run, Role.PLAN)[3]

    def no_code(ask: Ask) -> str:
        return "no code" if ask.role is Role.CODE else good(ask)

    run = a_run("cudamaster", no_code, parameters={"r": 2})
    assert steps(run)[1:] == ["plan", "code"] * 2 + ["end"]
    assert "the answer has no code" in prompts_of(run, Role.PLAN)[1]

    def one_debug_fails(ask: Ask) -> str:
        unusable = ask.role is Role.DEBUG and ask.place.slot == 3
        return "no code" if unusable else failing(0)(ask)

    run = a_run("cudamaster", one_debug_fails, parameters={"r": 1})
    assert steps(run)[1:] == [*ROUND, "debug", "debug", "measure profile", "end"]
