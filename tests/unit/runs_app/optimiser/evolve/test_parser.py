"""Answers become events once: candidates, votes, or the reason why there are none."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Edit, Place, Role
from runs_app.optimiser.evolve.evaluations import MAX_LOSSES
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.outcomes import Answer, CallFailure, Transition
from runs_app.optimiser.evolve.parser import AnswerParser, digest_of
from tests.unit.runs_app.optimiser.evolve.driving import World, a_config, a_problem, fenced, kernel

WORLD = World(sources={1: kernel()})


def a_history(**changes: Any) -> History:
    """A seed, candidate 1, and a question, number 1."""
    history = History(WORLD)
    seed = events.Drafted(number=1, digest=digest_of(kernel()), edit=Edit.SEED, place=Place())
    fields: dict[str, Any] = {
        "number": 1,
        "role": Role.PROPOSE,
        "place": Place(generation=1, slot=2),
        "model": "small",
        "temperature": 1.0,
        "prompt": "p",
        "prompt_version": 1,
        "max_tokens": 100,
        "worst_usd": 1.0,
        "worst_tokens": 100,
        "parents": (1,),
    }
    history.apply(seed)
    history.apply(events.Asked(**{**fields, **changes}))
    return history


def told(history: History, text: str, finish_reason: str = "stop") -> list[events.Event]:
    answer = Answer(
        ask=1,
        text=text,
        tokens_in=3,
        tokens_out=4,
        cost_usd=0.5,
        latency_s=1.0,
        finish_reason=finish_reason,
    )
    return applied(history, AnswerParser(a_problem(), a_config(), history).answer(answer))


def broken(history: History, text: str) -> list[events.Event]:
    failure = CallFailure(ask=1, reason="connection lost", cost_usd=1.0, text=text)
    return applied(history, AnswerParser(a_problem(), a_config(), history).failure(failure))


def applied(history: History, transitions: list[Transition]) -> list[events.Event]:
    for transition in transitions:
        history.apply(transition.event)
    return [transition.event for transition in transitions]


def kinds(found: list[events.Event]) -> list[str]:
    return [events.kind_of(event) for event in found]


def test_layout_and_comments_do_not_make_another_kernel() -> None:
    one = kernel("y[i] = 2 * x[i];")
    other = "// hello\n" + one.replace("\n  ", "\n\t/* x */ ").replace(" * ", "*")
    assert digest_of(one) == digest_of(other)
    assert digest_of(one) != digest_of(one.replace("2", "3"))
    assert digest_of('a("x  y")') != digest_of('a("x y")')
    assert digest_of("#define A\nint x;") != digest_of("#define A int x;")
    assert digest_of("#define A \\\n 1\nint x;") == digest_of("#define A 1\nint\nx;")
    assert digest_of("a - -b") != digest_of("a--b")
    assert digest_of('R"(// no comment)"') != digest_of('R"( )"')
    assert digest_of("int n = 1'000; // 'x") == digest_of("int n = 1'000;")


def test_an_answer_becomes_a_candidate() -> None:
    history = a_history()
    source = kernel("y[i] = x[i] + x[i];")
    answered, drafted = told(history, fenced(source, "Sum"))
    assert isinstance(answered, events.Answered)
    assert (answered.problem, answered.cost_usd) == ("", 0.5)
    assert isinstance(drafted, events.Drafted)
    assert (drafted.number, drafted.ask, drafted.parents) == (2, 1, (1,))
    assert (drafted.title, drafted.model, drafted.place.slot) == ("Sum", "small", 2)
    assert history.questions[1].candidate == 2


def test_telling_twice_changes_nothing() -> None:
    history = a_history()
    assert told(history, fenced(kernel("y[i] = x[i] + x[i];")))
    assert told(history, fenced(kernel("y[i] = x[i] * 2;"))) == []
    assert broken(history, "") == []


def test_a_repeated_kernel_is_dropped() -> None:
    history = a_history()
    found = told(history, fenced("// new!\n" + kernel()))
    assert kinds(found) == ["answered", "drafted", "dropped"]
    assert found[-1] == events.Dropped(candidate=2, reason="the same as #1")


@pytest.mark.parametrize("losses", range(MAX_LOSSES + 1))
def test_a_kernel_that_was_given_up_may_be_repeated(losses: int) -> None:
    history = a_history()
    for _ in range(losses):
        history.apply(events.Measuring(candidate=1, mode=Mode.QUICK))
        history.apply(
            events.Measured(candidate=1, mode=Mode.QUICK, verdict="SYSTEM_ERROR", reason="lost")
        )
    is_dropped = kinds(told(history, fenced(kernel())))[-1] == "dropped"
    assert is_dropped == (losses < MAX_LOSSES)


def test_an_unusable_answer_says_why() -> None:
    found = told(a_history(), "```cpp\n" + kernel()[:-5], "length")
    assert kinds(found) == ["answered"]
    assert isinstance(found[0], events.Answered)
    assert found[0].problem == (
        "the answer was cut off before its code was complete: it reached its token limit"
    )


def test_a_content_filter_is_named() -> None:
    (answered,) = told(a_history(), "I", "content_filter")
    assert isinstance(answered, events.Answered)
    assert answered.problem == "the endpoint's content filter stopped the answer"


def test_a_broken_call_is_used_if_its_code_is_whole() -> None:
    source = kernel("y[i] = x[i] + x[i];")
    history = a_history()
    assert kinds(broken(history, "```cpp\n" + source)) == ["failed", "drafted"]
    assert history.questions[1].candidate == 2
    assert kinds(broken(a_history(), "```cpp\n" + source[:-5])) == ["failed"]
    assert kinds(broken(a_history(), "")) == ["failed"]


def test_votes() -> None:
    voter = {"role": Role.VERIFY, "about": 1, "verifier": "memory", "parents": ()}
    history = a_history(**voter)
    found = told(history, "FINAL VERIFICATION ANSWER: False")
    assert kinds(found) == ["answered", "voted"]
    assert history.candidates[1].votes == {"memory": False}
    (answered,) = told(a_history(**voter), "hm")
    assert isinstance(answered, events.Answered)
    assert "FINAL VERIFICATION ANSWER" in answered.problem


def test_edits_are_made_to_the_parent() -> None:
    edit = (
        "NAME: Sum\n<<<<<<< SEARCH\n    y[i] = 2 * x[i];\n=======\n    y[i] = x[i] + x[i];\n"
        ">>>>>>> REPLACE"
    )
    history = a_history(edit=Edit.DIFF)
    transitions = AnswerParser(a_problem(), a_config(), history).answer(
        Answer(ask=1, text=edit, tokens_in=1, tokens_out=1, cost_usd=0, latency_s=1)
    )
    assert transitions[1].source == kernel("y[i] = x[i] + x[i];")
    assert isinstance(transitions[1].event, events.Drafted)
    assert transitions[1].event.title == "Sum"
    (misfit,) = told(a_history(edit=Edit.DIFF), edit.replace("2 * x[i]", "3 * x[i]"))
    assert isinstance(misfit, events.Answered)
    assert "does not fit kernel #1: block 1 of 1" in misfit.problem


def test_a_whole_file_in_place_of_edits_is_taken() -> None:
    found = told(a_history(edit=Edit.DIFF), fenced(kernel("y[i] = x[i] + x[i];")))
    assert kinds(found) == ["answered", "drafted"]


def test_the_compiler_role_may_say_ok() -> None:
    role = {"role": Role.COMPILE, "about": 1}
    (answered,) = told(a_history(**role), "OK")
    assert isinstance(answered, events.Answered)
    assert answered.problem == ""
    assert kinds(told(a_history(**role), fenced(kernel("y[i] = x[i] + x[i];"))))[1] == "drafted"


def test_prose_is_left_to_the_strategy() -> None:
    assert kinds(told(a_history(role=Role.PLAN), "Use tiles.")) == ["answered"]
    (empty,) = told(a_history(role=Role.RECOMMEND), "")
    assert isinstance(empty, events.Answered)
    assert empty.problem == "the answer is empty"
