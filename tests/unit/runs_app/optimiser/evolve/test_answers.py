"""Answers are read whatever surrounds the kernel, and what cannot be read says why."""

from __future__ import annotations

import json
import random
import time

import pytest

from gpu_runner.data.verdict import Abi
from runs_app.optimiser.evolve.answers import (
    Parsed,
    Unusable,
    is_consent,
    read_kernel,
    read_text,
    read_vote,
)
from tests.unit.runs_app.optimiser.evolve.driving import a_problem, fenced, kernel

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
    for _ in range(3000):
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
