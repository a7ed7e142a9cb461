"""Calls without an answer: charged if they may have cost, and sent again only if they cannot."""

from __future__ import annotations

import json
import socket
import threading
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
    assert ("base URL" in error.reason) == (status == 404)


def test_redirects_are_not_followed(caller: Caller) -> None:
    with ScriptedEndpoint([Answer("stolen")]) as elsewhere:
        headers = {"Location": f"{elsewhere.base_url}/chat/completions"}
        with ScriptedEndpoint([Answer(status=307, headers=headers)]) as endpoint:
            error = caller.fail(endpoint.base_url)
        assert elsewhere.asked == []
    assert (error.kind, error.usage is not None) == ("bad_request", False)
    assert "base URL" in error.reason


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
    assert (error.kind, error.usage is not None) == (kind, True)
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
    assert "check the base URL" in error.reason


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://127.0.0.1:1/v1", "nothing is listening at its address and port"),
        ("http://no-such-host.invalid/v1", "its host name is unknown"),
    ],
)
def test_what_stops_a_connection_is_said(caller: Caller, address: str, words: str) -> None:
    assert words in caller.fail(address).reason


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
        (Answer(LONG, drop="after", drop_chunks=3), "the connection was lost"),
        (Answer(LONG, error_after=3, message="overloaded"), "cut off its answer: overloaded"),
        (Answer(LONG[:32], done=False), "broke off partway through"),
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


def test_a_call_ends_when_its_time_is_over(caller: Caller) -> None:
    with ScriptedEndpoint([Answer(LONG, chunk_delay_s=0.3)]) as endpoint:
        error = caller.fail(endpoint.base_url, {"total_timeout_s": 1.5})
    assert error.kind == "interrupted"
    assert 0 < len(error.text) < len(LONG)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_what_was_not_worked_on_is_sent_again(caller: Caller, status: int) -> None:
    script = [Answer(status=status), Answer(status=status), Answer("at last")]
    with ScriptedEndpoint(script) as endpoint:
        done = caller.ask(endpoint.base_url)
        asked = endpoint.asked
    assert (done.text, done.attempts, len(asked)) == ("at last", 3, 3)
    assert asked[0].body == asked[1].body == asked[2].body
    assert {one.call_id for one in asked} == {"run-1-call-2"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        *[(Answer(status=status), f"HTTP {status}") for status in (504, 520, 524)],
        (Answer(drop="before"), "was lost"),  # the request was taken, so it may be paid
    ],
)
def test_what_may_be_paid_is_not_sent_again(caller: Caller, answer: Answer, words: str) -> None:
    with ScriptedEndpoint([answer, Answer("never asked for")]) as endpoint:
        error = caller.fail(endpoint.base_url)
        assert len(endpoint.asked) == 1
    assert isinstance(error, CallInterrupted)
    assert (error.attempts, error.text, caller.slept) == (1, "", [])
    assert error.usage is not None
    assert (error.usage.tokens_out, error.usage.estimated) == (1000, True)
    assert words in error.reason


def test_waits_double_and_differ(caller: Caller) -> None:
    with ScriptedEndpoint([Answer(status=500)]) as endpoint:
        error = caller.fail(endpoint.base_url)
        assert len(endpoint.asked) == 5
    assert (error.kind, error.usage is not None, error.attempts) == ("unavailable", False, 5)
    assert len(caller.slept) == 4
    for slept_s, whole_s in zip(caller.slept, [1, 2, 4, 8], strict=True):
        assert whole_s / 2 <= slept_s <= whole_s
    assert len({slept_s / 2**at for at, slept_s in enumerate(caller.slept)}) == 4


def test_a_limited_rate_is_respected(caller: Caller) -> None:
    script = [Answer(status=429, retry_after="7"), Answer(status=503, retry_after="1.5")]
    with ScriptedEndpoint([*script, Answer("at last")]) as endpoint:
        assert caller.ask(endpoint.base_url).attempts == 3
    assert caller.slept[0] == 7
    assert 1.5 <= caller.slept[1] <= 2


@pytest.mark.parametrize(
    ("answer", "total_s", "kind", "retry_after_s"),
    [
        (Answer(status=409), 99.0, "unavailable", None),  # a conflict
        (Answer(status=429, retry_after="600"), 900.0, "rate_limited", 600.0),
        (Answer(status=429, retry_after="20"), 10.0, "rate_limited", 20.0),
    ],
)
def test_a_conflict_and_a_long_wait_are_left_to_the_caller(
    caller: Caller, answer: Answer, total_s: float, kind: str, retry_after_s: float | None
) -> None:
    with ScriptedEndpoint([answer, Answer("never asked for")]) as endpoint:
        error = caller.fail(endpoint.base_url, {"total_timeout_s": total_s})
    assert (error.kind, error.retry_after_s, error.attempts) == (kind, retry_after_s, 1)
    assert (caller.slept, error.usage) == ([], None)


@pytest.mark.parametrize(
    ("sent", "kind", "attempts"),
    [
        (b"", "interrupted", 1),
        (b"HTTP/1.1 503 no\r\nContent-Length: 99\r\n\r\nhalf of it", "unavailable", 5),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "interrupted", 1),
        (b"220 mail.example ESMTP\r\n\r\n", "garbage", 1),  # does not speak HTTP
    ],
)
def test_a_connection_is_cut(caller: Caller, sent: bytes, kind: str, attempts: int) -> None:
    """What was taken may be paid, unless the status of an error says that it was not."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            for _ in range(attempts):
                connection, _ = server.accept()
                with connection:
                    taken = b""
                    while b"}" not in taken:
                        taken += connection.recv(65536)
                    connection.sendall(sent)

        thread = threading.Thread(target=hang_up)
        thread.start()
        error = caller.fail(f"http://127.0.0.1:{server.getsockname()[1]}/v1")
        thread.join()
    assert (error.kind, error.attempts) == (kind, attempts)
    assert kind == "garbage" or (error.usage is not None) == (kind == "interrupted")
