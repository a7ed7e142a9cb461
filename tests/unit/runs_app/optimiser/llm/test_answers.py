"""What becomes of answers, in all the forms that endpoints give them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs_app.optimiser.llm import wire
from runs_app.optimiser.llm.errors import CallInterrupted, StopCall, Usage
from tests.scripted_endpoint import HUGE, MODEL, Answer, ScriptedEndpoint
from tests.unit.runs_app.optimiser.llm.conftest import MESSAGES, Caller

LONG = "The quick brown fox jumps over the lazy dog. " * 20


def test_a_good_answer(caller: Caller) -> None:
    with ScriptedEndpoint([Answer(LONG, reasoning="hm, " * 10)]) as endpoint:
        done = caller.ask(endpoint.base_url)
        [asked] = endpoint.asked
    assert done.text == LONG
    assert (done.finish_reason, done.model, done.attempts) == ("stop", MODEL, 1)
    assert done.usage == Usage(tokens_in=5, tokens_out=236)
    assert asked.messages == MESSAGES
    assert asked.body == {
        "model": "scripted-1", "messages": MESSAGES, "stream": True, "max_tokens": 1000,
        "stream_options": {"include_usage": True}, "seed": 11, "temperature": 0.7,
    }  # fmt: skip
    assert asked.call_id == "run-1-call-2"


def test_parameters_that_differ_between_endpoints(caller: Caller) -> None:
    with ScriptedEndpoint([Answer("yes")]) as endpoint:
        caller.ask(
            endpoint.base_url, {"seed": None, "max_tokens": 90_000},
            token_parameter="max_completion_tokens", supports_temperature=False,
            extra={"reasoning_effort": "high", "stream_options": None}, max_output_tokens=4000,
        )  # fmt: skip
        [asked] = endpoint.asked
    assert asked.body == {
        "model": "scripted-1", "messages": MESSAGES, "stream": True,
        "max_completion_tokens": 4000, "reasoning_effort": "high",
    }  # fmt: skip


@pytest.mark.parametrize("label", ["text/event-stream", "application/json", "text/html"])
def test_the_bytes_say_what_an_answer_is_and_not_its_label(caller: Caller, label: str) -> None:
    message = {"choices": [{"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}]}
    delta = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}
    bodies = [json.dumps(message, indent=1), f"\n\ndata: {json.dumps(delta)}\n\ndata: [DONE]\n\n"]
    with ScriptedEndpoint([Answer(body=body, content_type=label) for body in bodies]) as endpoint:
        assert [caller.ask(endpoint.base_url).text for _ in bodies] == ["yes", "yes"]


def test_usage_that_is_missing_is_estimated_on_the_high_side(caller: Caller) -> None:
    with ScriptedEndpoint([Answer(LONG, usage="none"), Answer("yes", usage="none")]) as endpoint:
        done = caller.ask(endpoint.base_url)
        unseen = caller.ask(endpoint.base_url, token_parameter="max_completion_tokens")
    assert done.usage == Usage(tokens_in=8 + 2 * 16, tokens_out=len(LONG) // 2, estimated=True)
    # reasoning may have gone unseen: the whole allowance
    assert (unseen.usage.tokens_out, unseen.usage.estimated) == (1000, True)


def test_usage_of_an_answer_in_one_document_counts(caller: Caller) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 250}
    with ScriptedEndpoint([Answer(LONG, stream=False, usage=usage)]) as endpoint:
        done = caller.ask(endpoint.base_url)
    assert done.usage == Usage(tokens_in=90, tokens_out=250)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -1, "completion_tokens": 5},
        {"prompt_tokens": 10, "completion_tokens": 10**12},
        {"prompt_tokens": 10**9, "completion_tokens": 5},
        {"prompt_tokens": 10, "completion_tokens": 0},
        {"prompt_tokens": 0, "completion_tokens": 5},
        {"prompt_tokens": "ten", "completion_tokens": 5.5},
        {"prompt_tokens": True, "completion_tokens": None},
        {},
    ],
)
def test_usage_that_cannot_be_true_is_estimated(caller: Caller, usage: dict[str, Any]) -> None:
    with ScriptedEndpoint([Answer("fine", usage=usage)]) as endpoint:
        done = caller.ask(endpoint.base_url)
    assert (done.text, done.usage.tokens_in, done.usage.tokens_out) == ("fine", 40, 2)
    assert done.usage.estimated


def test_reasoning_that_is_counted_beside_the_output_is_added(caller: Caller) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115}
    usage["completion_tokens_details"] = {"reasoning_tokens": 100}  # type: ignore[assignment]
    with ScriptedEndpoint([Answer("fine", usage=usage)]) as endpoint:
        done = caller.ask(endpoint.base_url)
    assert done.usage == Usage(tokens_in=10, tokens_out=105)


def test_a_large_answer_is_kept(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_UNREAD_BYTES", 70_000)  # only what is unread counts
    with ScriptedEndpoint([HUGE]) as endpoint:  # 230 bytes of event for each 16
        done = caller.ask(endpoint.base_url, max_output_tokens=64_000)
    assert (len(done.text), done.finish_reason) == (200_000, "stop")


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_without_end_is_cut(caller: Caller, stream: bool) -> None:
    answer = Answer("ä" * 200_001, chunk_chars=3001, stream=stream)
    with ScriptedEndpoint([answer]) as endpoint:
        done = caller.ask(endpoint.base_url)
    assert done.finish_reason == "cut"
    assert done.text == "ä" * (128 * 1024)


def test_reasoning_without_end_is_cut(caller: Caller) -> None:
    with ScriptedEndpoint([Answer("never", reasoning="hm, " * 2**20 + "!")]) as endpoint:
        error = caller.fail(endpoint.base_url)
    assert (error.kind, error.usage is not None) == ("empty", True)


def test_what_a_database_cannot_keep_is_replaced(caller: Caller) -> None:
    with ScriptedEndpoint([Answer("a\0b\ud800c")]) as endpoint:
        assert caller.ask(endpoint.base_url).text == "a\ufffdb?c"


def test_a_caller_may_stop_a_call_and_its_errors_are_its_own(caller: Caller) -> None:
    def stop(text: str) -> None:
        raise StopCall

    def stumble(text: str) -> None:
        raise ValueError("mine")

    with ScriptedEndpoint([Answer(LONG, chunk_delay_s=0.05), Answer(LONG)]) as endpoint:
        error = caller.fail(endpoint.base_url, {"on_progress": stop})
        with pytest.raises(ValueError, match="mine"):
            caller.ask(endpoint.base_url, {"on_progress": stumble})
    assert isinstance(error, CallInterrupted)
    assert (error.reason, error.text) == ("the call was stopped", LONG[:16])
