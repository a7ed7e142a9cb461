"""Answers are read whatever surrounds the kernel, and each becomes an event once."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from gpu_runner.data.verdict import Abi, Mode
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.answers import (
    Parsed,
    Unusable,
    is_consent,
    read_kernel,
    read_text,
    read_vote,
)
from runs_app.optimiser.evolve.commands import Edit, Place, Role
from runs_app.optimiser.evolve.evaluations import MAX_LOSSES
from runs_app.optimiser.evolve.events import Answer, Transition
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.parser import AnswerParser, digest_of, techniques_in
from tests.unit.runs_app.optimiser.evolve.driving import World, a_config, a_problem, fenced, kernel

PROBLEM = a_problem()
TORCH = a_problem(abi=Abi.TORCH, signature="forward(x)")
CODE = kernel()


def read(text: str, *, cut: bool = False) -> Parsed:
    found = read_kernel(text, PROBLEM, cut=cut)
    assert isinstance(found, Parsed), found
    return found


def refused(text: str, *, cut: bool = False) -> str:
    found = read_kernel(text, PROBLEM, cut=cut)
    assert isinstance(found, Unusable), found
    return found.reason


def test_headings_give_title_and_thought() -> None:
    found = read("NAME: **Two at a time**\nTHOUGHT: fewer\nloops.\nCODE:\n```cpp\n" + CODE + "```")
    assert found == Parsed(CODE, "Two at a time", "fewer\nloops.")
    found = read(f"Sure! Here you are.\n\n```c++\n{CODE}```\n\nHope it helps, {{ and }} included.")
    assert (found.code, found.thought) == (CODE, "Sure! Here you are.")


@pytest.mark.parametrize(
    "wrapped",
    [
        "```\n{code}```",
        "~~~cpp\n{code}~~~",
        "````markdown\nlook:\n```cpp\n{code}```\n````",
        "```markdown\nlook:\n```cpp\n{code}```\n```",
        "CODE:\n{code}",
        "Here it is.\n{code}\nThat is all.",
        "   ```cpp title=kernel.cpp\n{code}   ```",
    ],
)
def test_forms_of_a_code_block(wrapped: str) -> None:
    assert read(wrapped.format(code=CODE)).code == CODE


def test_the_symbol_decides_between_blocks_then_the_tag_and_then_length() -> None:
    other = "```cpp\nint main() {\n" + "  // long\n" * 50 + "}\n```"
    assert read(f"{other}\n```\n{CODE}```\n{other}").code == CODE
    longer = kernel("y[i] = x[i] + x[i];  // a comment that makes it longer")
    assert read(f"```text\n{longer}```\n```cpp\n{CODE}```").code == CODE
    assert read(f"```cpp\n{CODE}```\n```cpp\n{longer}```").code == longer
    assert read(f"```cpp\nint x = {{\n\n```cpp\n{CODE}```").code == CODE  # of which one is open


def test_a_call_or_a_comment_is_no_definition() -> None:
    caller = "void other() { scale(x, y, n); }  // void scale() {"
    assert "defines the function 'scale'" in refused(f"```cpp\n{caller}\n```")
    assert "defines the function 'scale'" in refused(f"```cpp\n{CODE.split('{')[0]};\n```")


def test_a_missing_closing_fence_needs_a_whole_kernel() -> None:
    assert read("```cpp\n" + CODE).code == CODE
    assert "cut off" in refused("```cpp\n" + CODE[:-4])
    assert "cut off" in refused('```cpp\n#include <cmath>\nstatic const char* s = "abc', cut=True)
    assert "cut off" in refused(
        "NAME: x\n```cpp\n#include <cmath>\nstatic float f(float x) {\n  if ("
    )
    assert read("```cpp\n" + CODE + "\n```\nand so on and", cut=True).code.strip() == CODE.strip()


def test_refusals_are_named() -> None:
    assert refused("   \n\t") == "the answer is empty"
    assert refused("I'm sorry, but I can't help with that.").startswith("the model refused: “I'm")
    assert refused("What a lovely task!").startswith("the answer has no code")


def test_json_wrapped_code() -> None:
    text = json.dumps({"name": "Wrapped", "thought": "why not", "code": CODE})
    for answer in (text, f"```json\n{text}\n```", f"As asked:\n```json\n{text}\n```\nDone."):
        found = read(answer)
        assert (found.code, found.title, found.thought) == (CODE, "Wrapped", "why not")
    assert read(json.dumps({"code": fenced(CODE)})).code == CODE


def test_torch_needs_a_module() -> None:
    module = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"
    assert isinstance(read_kernel(f"```cuda\n{module}```", TORCH), Parsed)
    bad = read_kernel(f"```cuda\n// {module}```", TORCH)
    assert bad == Unusable("no code block has a PYBIND11_MODULE")


def test_long_answers_are_read_in_time_and_too_long_kernels_refused() -> None:
    began = time.process_time()
    assert read("word " * 40_000 + f"\n```cpp\n{CODE}```").code == CODE
    many = "scale(" * 35_000
    for hostile in (many, f"```cpp\n{many}\n```", "`" * 200_000, "{" * 200_000, "/*" * 100_000):
        refused(hostile)
    assert time.process_time() - began < 5
    assert "limit is 1048576" in refused(f"```cpp\n{CODE}//{'x' * 2**20}\n```")
    assert "NUL" in refused(f"```cpp\n{CODE}// \0\n```")


@pytest.mark.parametrize(
    ("text", "vote"),
    [
        ("It builds.\nFINAL VERIFICATION ANSWER: True", True),
        ("**final verification ANSWER:** `false`.", False),
        ("FINAL VERIFICATION ANSWER: True\nNo, wait.\nFINAL VERIFICATION ANSWER: False", False),
        ('{"answer": true}', True),
        ('It may not.\n```json\n{"reason": "x", "answer": "False"}\n```', False),
        ("I looked at it.\n**True**", True),
    ],
)
def test_votes(text: str, *, vote: bool) -> None:
    assert read_vote(text) is vote


def test_what_is_no_vote_counts_for_neither() -> None:
    for text in ("", "It is true that it may fail.", "I cannot judge that."):
        assert isinstance(read_vote(text), Unusable)


def test_garbage_is_unusable_and_never_an_error() -> None:
    dice = random.Random(1)
    pieces = [
        "```", "````", "~~~", "cpp", "json", "\n", "{", "}", '"', "'", "\\", "scale", "(", ")", ";",
        "NAME:", "CODE:", "R\"(", "/*", "*/", "//", "#include", "\x00", "é", '{"code": "', "True",
        "FINAL VERIFICATION ANSWER", "<<<<<<< SEARCH", "@@", '"}', CODE,
    ]  # fmt: skip
    for _ in range(1000):
        text = "".join(dice.choices(pieces, k=dice.randrange(1, 30)))
        found = read_kernel(text, PROBLEM, cut=dice.random() < 0.5)
        assert isinstance(found, Unusable) or "scale" in found.code
        assert read_vote(text) in (True, False) or isinstance(read_vote(text), Unusable)
        assert read_text(text)


def test_prose_and_consent() -> None:
    assert read_text("  One strategy.\n") == "One strategy."
    for refusal in (" ", "I'm sorry, I can't do that."):
        assert isinstance(read_text(refusal), Unusable)
    plan = "Move the loads ahead of the barrier, as it stalls; I will not do anything to the tiles."
    assert read_text(plan) == plan
    assert is_consent("It builds.\n**OK**")
    assert not is_consent(f"OK, but:\n```cpp\n{CODE}```")
    assert not is_consent("Okay-ish is not what it is")


WORLD = World(sources={1: kernel()})
SUM = kernel("y[i] = x[i] + x[i];")


def a_history(**changes: Any) -> History:
    """A seed, candidate 1, and a question, number 1."""
    history = History(WORLD)
    seed = events.Drafted(number=1, digest=digest_of(kernel()), edit=Edit.SEED, place=Place())
    fields: dict[str, Any] = {
        "number": 1, "role": Role.PROPOSE, "place": Place(generation=1, slot=2), "model": "small",
        "temperature": 1.0, "prompt": "p", "prompt_version": 1, "max_tokens": 100,
        "worst_usd": 1.0, "worst_tokens": 100, "parents": (1,),
    }  # fmt: skip
    history.apply(seed)
    history.apply(events.Asked(**{**fields, **changes}))
    return history


def told(history: History, text: str, finish_reason: str = "stop") -> list[events.Event]:
    event = events.Answered(ask=1, tokens_in=3, tokens_out=4, cost_usd=0.5, latency_s=1.0)
    answer = Answer(event=event, text=text, finish_reason=finish_reason)
    return applied(history, AnswerParser(a_problem(), a_config(), history).answer(answer))


def broken(history: History, text: str) -> list[events.Event]:
    event = events.Failed(ask=1, reason="connection lost", cost_usd=1.0)
    answer = Answer(event=event, text=text)
    return applied(history, AnswerParser(a_problem(), a_config(), history).answer(answer))


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


def problem(history: History, text: str, finish_reason: str = "stop") -> str:
    """Why an answer of which nothing came was of no use."""
    (answered,) = told(history, text, finish_reason)
    assert isinstance(answered, events.Answered)
    return answered.problem


@pytest.mark.parametrize("losses", range(MAX_LOSSES + 1))
def test_a_repeated_kernel_is_dropped_unless_it_was_given_up(losses: int) -> None:
    history = a_history()
    for _ in range(losses):
        history.apply(events.Measuring(candidate=1, mode=Mode.QUICK))
        history.apply(
            events.Measured(candidate=1, mode=Mode.QUICK, verdict="SYSTEM_ERROR", reason="lost")
        )
    *others, last = told(history, fenced("// new!\n" + kernel()))
    assert kinds(others)[:1] == ["answered"]
    dropped = events.Dropped(candidate=2, reason="the same as #1")
    assert (last == dropped) == (losses < MAX_LOSSES)


def test_an_unusable_answer_says_why() -> None:
    assert "cut off" in problem(a_history(), "```cpp\n" + kernel()[:-5], "length")
    assert "content filter" in problem(a_history(), "I", "content_filter")
    assert problem(a_history(role=Role.RECOMMEND), "") == "the answer is empty"
    assert kinds(told(a_history(role=Role.PLAN), "Use tiles.")) == ["answered"]  # prose


def test_a_broken_call_is_used_if_its_code_is_whole() -> None:
    history = a_history()
    assert kinds(broken(history, "```cpp\n" + SUM)) == ["failed", "drafted"]
    assert history.questions[1].candidate == 2
    for text in ("```cpp\n" + SUM[:-5], ""):
        assert kinds(broken(a_history(), text)) == ["failed"]


def test_edits_are_made_to_the_parent_and_a_whole_file_is_taken_as_well() -> None:
    old = "    y[i] = 2 * x[i];"
    edit = f"NAME: Sum\n<<<<<<< SEARCH\n{old}\n=======\n    y[i] = x[i] + x[i];\n>>>>>>> REPLACE"
    event = events.Answered(ask=1, tokens_in=1, tokens_out=1, cost_usd=0, latency_s=1)
    answer = Answer(event=event, text=edit)
    parser = AnswerParser(a_problem(), a_config(), a_history(edit=Edit.DIFF))
    _, drafted = parser.answer(answer)
    assert drafted.source == SUM
    assert isinstance(drafted.event, events.Drafted)
    assert drafted.event.title == "Sum"
    misfit = problem(a_history(edit=Edit.DIFF), edit.replace("2 * x[i]", "3 * x[i]"))
    assert "kernel #1: block 1 of 1" in misfit
    assert kinds(told(a_history(edit=Edit.DIFF), fenced(SUM))) == ["answered", "drafted"]


def test_comments_are_no_sign_and_the_order_is_that_of_the_names() -> None:
    assert techniques_in("// __shared__ and #pragma omp parallel\nint x; /* wmma:: */") == ()
    found = techniques_in("#pragma omp parallel for\n__shared__ int TILE_X = 3; wmma::x;")
    assert found == ("tensor cores", "shared memory", "blocking", "openmp")
