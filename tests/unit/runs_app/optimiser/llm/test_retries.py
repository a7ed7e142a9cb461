"""A call is sent again if and only if it cannot have been paid, and not too soon."""

from __future__ import annotations

import socket
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from runs_app.optimiser.llm.errors import CallInterrupted
from runs_app.optimiser.llm.failure import retry_after_s
from tests.conftest import free_port
from tests.scripted_endpoint import Answer, ScriptedEndpoint
from tests.unit.runs_app.optimiser.llm.conftest import Caller

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


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
        (Answer(drop="before"), "broke off"),  # the request was taken, so it may be paid
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
    ("value", "seconds"),
    [
        ("12", 12.0), ("0.25", 0.25),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0), ("-5", None),
        ("soon", None), ("nan", None), ("9" * 400, None), ("", None),
    ],
)  # fmt: skip
def test_forms_of_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": value}, NOW) == seconds


def test_nobody_listens(caller: Caller) -> None:
    for host in (f"127.0.0.1:{free_port()}", "no-such-host.invalid"):
        error = caller.fail(f"http://{host}/v1")
        assert (error.kind, error.usage, error.attempts) == ("unavailable", None, 5)


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
