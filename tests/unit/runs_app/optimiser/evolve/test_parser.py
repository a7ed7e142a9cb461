"""Answers become events once: candidates, votes, or the reason why there are none."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Edit, Place, Role
from runs_app.optimiser.evolve.evaluations import MAX_LOSSES
from runs_app.optimiser.evolve.events import Answer, Transition
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.parser import AnswerParser, digest_of, techniques_in
from tests.unit.runs_app.optimiser.evolve.driving import World, a_config, a_problem, fenced, kernel

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


def test_an_answer_becomes_a_candidate_once() -> None:
    history = a_history()
    answered, drafted = told(history, fenced(SUM, "Sum"))
    assert isinstance(answered, events.Answered)
    assert (answered.problem, answered.cost_usd) == ("", 0.5)
    assert isinstance(drafted, events.Drafted)
    assert (drafted.number, drafted.ask, drafted.parents) == (2, 1, (1,))
    assert (drafted.title, drafted.model, drafted.place.slot) == ("Sum", "small", 2)
    assert history.questions[1].candidate == 2


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


def test_votes_and_consent() -> None:
    voter = {"role": Role.VERIFY, "about": 1, "verifier": "memory", "parents": ()}
    history = a_history(**voter)
    assert kinds(told(history, "FINAL VERIFICATION ANSWER: False")) == ["answered", "voted"]
    assert history.candidates[1].votes == {"memory": False}
    assert "FINAL VERIFICATION ANSWER" in problem(a_history(**voter), "hm")
    compiler = {"role": Role.COMPILE, "about": 1}
    assert problem(a_history(**compiler), "OK") == ""
    assert kinds(told(a_history(**compiler), fenced(SUM))) == ["answered", "drafted"]


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
    assert "does not fit kernel #1: block 1 of 1" in misfit
    assert kinds(told(a_history(edit=Edit.DIFF), fenced(SUM))) == ["answered", "drafted"]


@pytest.mark.parametrize(
    ("code", "technique"),
    [
        ("__shared__ float tile[32][33];", "shared memory"),
        ("v += __shfl_down_sync(0xffffffff, v, 16);", "warp shuffle"),
        ("const float4* v = reinterpret_cast<const float4*>(x);", "vector loads"),
        ("wmma::mma_sync(c, a, b, c);", "tensor cores"),
        ('asm volatile("cp.async.ca.shared.global [%0], [%1], 16;");', "async copy"),
        ("#pragma unroll 4\nfor (;;) {}", "unrolling"),
        ("#pragma omp parallel for\nfor (;;) {}", "openmp"),
        ("#pragma omp simd reduction(+ : s)\n", "simd"),
        ("__m256 a = _mm256_loadu_ps(x);", "simd"),
        ("constexpr int TILE = 32;", "blocking"),
        ("for (int i = t; i < n; i += blockDim.x * gridDim.x) {}", "grid stride"),
        ("__builtin_prefetch(x + 64);", "prefetch"),
        ("float x = __ldg(p);", "read-only cache"),
    ],
)
def test_techniques_are_named(code: str, technique: str) -> None:
    assert technique in techniques_in(code)


def test_comments_are_no_sign_and_the_order_is_that_of_the_names() -> None:
    assert techniques_in("// __shared__ and #pragma omp parallel\nint x; /* wmma:: */") == ()
    found = techniques_in("#pragma omp parallel for\n__shared__ int TILE_X = 3; wmma::x;")
    assert found == ("tensor cores", "shared memory", "blocking", "openmp")
