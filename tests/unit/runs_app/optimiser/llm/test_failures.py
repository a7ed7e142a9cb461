"""Calls that end without an answer: each ends as what it is, and is charged if it may have cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs_app.optimiser.llm.errors import CallInterrupted
from tests.scripted_endpoint import EMPTY, GARBAGE, HTML, Answer, ScriptedEndpoint
from tests.unit.runs_app.optimiser.llm.conftest import Caller

LONG = "0123456789abcdef" * 6


def events(*documents: object) -> Answer:
    """A stream of these events, and nothing else."""
    body = "".join(f"data: {json.dumps(document)}\n\n" for document in documents)
    return Answer(body=body, content_type="text/event-stream")


def choice(**fields: Any) -> dict[str, Any]:
    """An event with one choice."""
    return {"choices": [{"index": 0, **fields}]}


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        *[(status, None, "bad_request") for status in (400, 404, 422)],
        *[(status, None, "auth") for status in (401, 402, 403)],
        (400, "content_filter", "refused"),
        (429, "insufficient_quota", "auth"),
    ],
)
def test_what_would_fail_again_is_not_sent_again(
    caller: Caller, status: int, code: str | None, kind: str
) -> None:
    with ScriptedEndpoint([Answer(status=status, code=code, message="so\nit is")]) as endpoint:
        error = caller.fail(endpoint.base_url)
        assert len(endpoint.asked) == 1
    assert (error.kind, error.usage is not None, error.attempts) == (kind, False, 1)
    assert error.reason.endswith(f"(HTTP {status}): so it is")


def test_redirects_are_not_followed(caller: Caller) -> None:
    with ScriptedEndpoint([Answer("stolen")]) as elsewhere:
        headers = {"Location": f"{elsewhere.base_url}/chat/completions"}
        with ScriptedEndpoint([Answer(status=307, headers=headers)]) as endpoint:
            error = caller.fail(endpoint.base_url)
        assert elsewhere.asked == []
    assert (error.kind, error.usage is not None) == ("bad_request", False)
    assert "base_url" in error.reason


def test_an_explanation_is_shortened_and_a_page_is_not_quoted(caller: Caller) -> None:
    page = Answer(status=403, body="<html>" + "<p>no</p>" * 50_000, content_type="text/html")
    with ScriptedEndpoint([page, Answer(status=400, message="no " * 10_000)]) as endpoint:
        error = caller.fail(endpoint.base_url)
        assert (error.kind, "<p>" in error.reason) == ("auth", False)
        assert len(caller.fail(endpoint.base_url).reason) == 400


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(None, refusal="I must not"), "refused"),
        (Answer("half", finish_reason="content_filter"), "refused"),
        (EMPTY, "empty"),
        (Answer(None), "empty"),
        (Answer("  \n "), "empty"),
        (Answer(17), "empty"),
        (Answer("x", choices=[]), "empty"),
        (Answer("", reasoning="only thoughts", finish_reason="length"), "empty"),
        (Answer(body=""), "empty"),
    ],
)
def test_what_is_empty_is_charged(caller: Caller, answer: Answer, kind: str, stream: bool) -> None:
    answer.stream = stream
    with ScriptedEndpoint([answer]) as endpoint:
        error = caller.fail(endpoint.base_url)
        assert len(endpoint.asked) == 1
    assert (error.kind, error.usage is not None) == (kind, answer.body is None)
    assert (answer.refusal or "") in error.reason
    assert ("only reasoning, finish_reason length" in error.reason) == bool(answer.reasoning)
    if kind == "refused":
        assert error.text == (answer.text or "")


@pytest.mark.parametrize(
    "answer",
    [
        GARBAGE,
        Answer(body='{"choices": [{"mess'),
        Answer(body='{"choices": "none"}'),
        Answer(body='{"a":' * 100_000),
        Answer(body='{"a":' + "9" * 5000 + "}"),
        Answer(body="[1, 2]"),
        Answer(body="data: {no\n\n", content_type="text/event-stream"),
        Answer(body="{}", headers={"Content-Encoding": "gzip"}),
        Answer(body="SSH-2.0-OpenSSH_9.2", content_type="text/plain"),
        Answer(body=json.dumps(choice(message={"content": "yes"}) | {"pad": "x" * 9 * 2**20})),
        events(choice(delta={"content": "yes"}) | {"pad": "x" * 9 * 2**20}),
        events(1, None, [], "x", {"choices": 3}),
    ],
)
def test_garbage(caller: Caller, answer: Answer) -> None:
    with ScriptedEndpoint([answer]) as endpoint:
        error = caller.fail(endpoint.base_url)
        assert [asked.headers["accept-encoding"] for asked in endpoint.asked] == ["identity"]
    assert error.kind == "garbage"
    assert error.usage is not None
    assert (error.usage.tokens_out, error.usage.estimated) == (1000, True)


def test_strange_events_between_good_ones_are_left_aside(caller: Caller) -> None:
    good = [choice(delta={"content": "ye"}), choice(delta={"content": "s"}, finish_reason="stop")]
    odd = [1, {"choices": [None, {"delta": 3}, {"index": 1, "delta": {"content": "no"}}]}]
    with ScriptedEndpoint([events(*odd, good[0], *odd, good[1], *odd)]) as endpoint:
        done = caller.ask(endpoint.base_url)
    assert (done.text, done.finish_reason, done.usage.estimated) == ("yes", "stop", True)


def test_a_web_page_in_place_of_an_answer_costs_nothing(caller: Caller) -> None:
    with ScriptedEndpoint([HTML]) as endpoint:
        error = caller.fail(endpoint.base_url)
    assert (error.kind, error.usage is not None) == ("garbage", False)
    assert "check base_url" in error.reason


@pytest.mark.parametrize("code", [404, "404"])
def test_an_error_document_with_status_200(caller: Caller, code: object) -> None:
    document = {"error": {"message": "no such model", "code": code}}
    with ScriptedEndpoint([Answer(body=json.dumps(document)), events(document)]) as endpoint:
        for _ in range(2):
            error = caller.fail(endpoint.base_url)
            assert (error.kind, error.usage is not None) == ("bad_request", False)
            assert error.reason.endswith(": no such model")
        assert len(endpoint.asked) == 2


PART = f"data: {json.dumps(choice(delta={'content': LONG[:32]}))}\n\n"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(LONG, drop="after", drop_chunks=3), "the connection broke off"),
        (Answer(LONG, error_after=3, message="overloaded"), "broke off its answer: overloaded"),
        (Answer(LONG[:32], done=False), "ended in the middle"),
        (events(choice(delta={"content": LONG[:32]}), {"error": "gone"}), "its answer: gone"),
        (Answer(body=PART + "data: {\n\n"), ""),
    ],
)
def test_a_partial_answer_is_kept(caller: Caller, answer: Answer, reason: str) -> None:
    with ScriptedEndpoint([answer]) as endpoint:
        error = caller.fail(endpoint.base_url)
        assert len(endpoint.asked) == 1
    assert isinstance(error, CallInterrupted)
    assert reason in error.reason
    assert error.text == LONG[:32]
    assert error.usage is not None
    assert (error.usage.tokens_out, error.usage.estimated) == (16, True)


@pytest.mark.parametrize("field", ["delay_s", "chunk_delay_s", "comments_s"])
def test_silence_is_interrupted(caller: Caller, field: str) -> None:
    with ScriptedEndpoint([Answer("late", **{field: 30})]) as endpoint:  # type: ignore[arg-type]
        error = caller.fail(endpoint.base_url, timeout_s=0.2)
        assert len(endpoint.asked) == 1
    assert (error.kind, error.usage is not None, error.text) == ("interrupted", True, "")
    assert error.usage is not None
    assert error.usage.tokens_out == 1000


def test_a_slow_answer_that_goes_on_is_not_silence(caller: Caller) -> None:
    with ScriptedEndpoint([Answer(LONG, chunk_delay_s=0.2)]) as endpoint:
        assert caller.ask(endpoint.base_url, timeout_s=1.0).text == LONG


def test_a_call_ends_when_its_time_is_over(caller: Caller) -> None:
    with ScriptedEndpoint([Answer(LONG, chunk_delay_s=0.3)]) as endpoint:
        error = caller.fail(endpoint.base_url, {"total_timeout_s": 1.5})
    assert error.kind == "interrupted"
    assert 0 < len(error.text) < len(LONG)
