"""CUDA-LLM's FSR: N candidates a depth; compile, validate, profile; the fastest goes on."""

from __future__ import annotations

from collections import Counter

from runs_app.optimiser.evolve.commands import Ask
from tests.unit.runs_app.optimiser.evolve.driving import Drive, Failure, fenced
from tests.unit.runs_app.optimiser.evolve.papers import a_run, broken, ending, fast, steps, wrong

SMALL = {"n": 3, "depth": 3}


def speak(ask: Ask) -> str:
    """Slot 2 is the fastest of its depth, and each depth is faster; slot 1 does not build."""
    depth, slot = ask.place.generation, ask.place.slot
    if slot == 1:
        return fenced(broken(depth))
    return fenced(fast(4000 - 500 * depth + 10 * slot), title=f"d{depth}s{slot}")


def messages(run: Drive, depth: int) -> list[tuple[str, str]]:
    number = run.history.find(generation=depth)[0].number
    return [(message.role, message.content) for message in run.world.prompts[number]]


def test_a_depth_is_timed_before_the_next_and_its_fastest_goes_on_with_the_dialogue() -> None:
    run = a_run("fsr", speak, parameters=SMALL, seed_source="")
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
        return speak(ask)

    run = a_run("fsr", failing, parameters=SMALL, seed_source="")
    second = messages(run, 2)
    assert wrong().strip() in second[2][1]  # it compiles: nearer to working than the others
    assert "did not pass" in second[3][1]
    assert "WRONG_RESULT: as scripted" in second[3][1]
    assert run.best


def test_nothing_faster_keeps_the_fastest_and_says_what_was_tried() -> None:
    def slower(ask: Ask) -> str:
        depth, slot = ask.place.generation, ask.place.slot
        return fenced(fast(1000 * depth + slot), title=f"d{depth}s{slot}")

    run = a_run("fsr", slower, parameters=SMALL, seed_source="")
    last = messages(run, 3)
    assert [role for role, _ in last] == ["system", "user", "assistant", "user"]
    assert fast(1001).strip() in last[2][1]
    assert "d2s1: correct, 2.00 us" in last[3][1]
    assert run.best.latency_ns == 1001
    assert ending(run).endswith(f"kernel #{run.best.number} is the fastest")


def test_the_dialogue_has_a_length() -> None:
    def faster(ask: Ask) -> str:
        return fenced(fast(4000 - 100 * ask.place.generation))

    parameters = {"n": 1, "depth": 5, "history": 1}
    run = a_run("fsr", faster, parameters=parameters, seed_source="")
    assert [len(messages(run, depth)) for depth in range(1, 6)] == [2, 4, 6, 6, 6]


def test_a_seed_is_what_the_search_goes_on_from() -> None:
    run = a_run("fsr", speak, parameters=SMALL)
    assert (steps(run)[0], messages(run, 1)[2][0]) == ("measure quick", "assistant")


def test_unusable_answers_and_failed_calls_leave_gaps_only() -> None:
    def talk(ask: Ask) -> str | Failure:
        if ask.place.generation == 1:
            return "no code" if ask.place.slot == 1 else Failure()
        return speak(ask)

    run = a_run("fsr", talk, parameters=SMALL, seed_source="")
    assert [role for role, _ in messages(run, 2)] == ["system", "user"]
    assert run.best
    nothing = a_run("fsr", lambda _: "no", parameters=SMALL, seed_source="")
    assert ending(nothing) == "the search reached depth 3: no kernel passed"
