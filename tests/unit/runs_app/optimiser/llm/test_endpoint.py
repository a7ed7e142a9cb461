"""What endpoints are refused, what they may count, and that no key is ever shown."""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any

import pytest

from runs_app.optimiser.evolve import budget
from runs_app.optimiser.evolve.commands import Message
from runs_app.optimiser.evolve.config import Budget, ModelSpec
from runs_app.optimiser.llm import tokens
from runs_app.optimiser.llm.errors import MissingKey
from tests.scripted_endpoint import Answer, ScriptedEndpoint
from tests.unit.runs_app.optimiser.llm.conftest import Caller, make_endpoint

BAD_HOSTS = ("", "me:secret@host", "me@host", "host:99999", "host:0", "[::1", "a" * 70 + ".example")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""), ("api_name", ""),
        *[("base_url", text) for text in ("", "https://host/v 1", "file:///etc/passwd")],
        *[("base_url", f"https://{text}/v1") for text in BAD_HOSTS],
        ("base_url", "https://host/v1?key=secret"), ("key_variable", "MY KEY"),
        ("key_variable", "sk-0123"), ("max_output_tokens", 0), ("timeout_s", 0),
        ("timeout_s", float("nan")), ("token_parameter", "n"), ("extra", {"max_tokens": 10**9}),
        ("extra", {"n": 5}), ("extra", {"model": "dearer"}), ("extra", {"bias": float("nan")}),
        ("extra", {"what": object()}),
    ],
)  # fmt: skip
def test_the_field_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field) as caught:
        make_endpoint(**{field: value})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "value"),
    [("max_tokens", 0), ("call_id", ""), ("call_id", "two words"), ("call_id", "a\r\nX-Evil: 1")],
)
def test_arguments_of_a_call(caller: Caller, argument: str, value: Any) -> None:
    with ScriptedEndpoint([Answer("yes")]) as endpoint:
        with pytest.raises(ValueError, match=argument):
            caller.ask(endpoint.base_url, {argument: value})
        assert endpoint.asked == []


@pytest.mark.parametrize("texts", [[], ["be brief", "ä" * 460]])
@pytest.mark.parametrize("extra", [{}, {"reasoning_effort": "low"}, {"schema": {"what": "ö" * 99}}])
def test_a_run_holds_back_what_may_be_counted(texts: list[str], extra: dict[str, Any]) -> None:
    sent = [{"role": "user", "content": text} for text in texts]
    added = tokens.extra_tokens(extra)
    assert added == (len(json.dumps(extra)) if extra else 0)
    model = ModelSpec(name="any", extra_tokens=added)
    bound = budget.tokens_bound(Message(role="user", content=text) for text in texts)
    held = budget.allow(Budget(), budget.Spent(0.0, 0, 0), model, bound, wanted=100)
    assert held.worst_tokens - 100 == tokens.upper_bound_tokens(sent, extra)


KEY = "sk-very-secret-0123456789"
VARIABLE = "SCRIPTED_API_KEY"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f" {KEY}\n")


def test_the_key_is_sent_and_not_repeated(caller: Caller) -> None:
    with ScriptedEndpoint([Answer("yes"), Answer(f"You are {KEY}.")], key=KEY) as endpoint:
        assert caller.ask(endpoint.base_url, key_variable=VARIABLE).text == "yes"
        assert caller.ask(endpoint.base_url, key_variable=VARIABLE).text == "You are [key]."
        assert caller.fail(endpoint.base_url).kind == "auth"
    assert KEY not in repr(make_endpoint(key_variable=VARIABLE))


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_names_its_variable(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv(VARIABLE)
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    with ScriptedEndpoint([Answer("yes")]) as endpoint:
        error = caller.fail(endpoint.base_url, key_variable=VARIABLE)
        assert endpoint.asked == []
    assert isinstance(error, MissingKey)
    assert VARIABLE in error.reason
    assert (error.kind, error.usage is not None) == ("auth", False)


@pytest.mark.parametrize("value", [f"{KEY}\n{KEY}", f"Bearer {KEY}", f"{KEY}ä"])
def test_a_key_that_cannot_be_one_is_not_shown(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    error = caller.fail("http://127.0.0.1:1/v1", key_variable=VARIABLE)
    assert isinstance(error, MissingKey)
    assert KEY not in "".join(traceback.format_exception(error))
    assert not held_by_frames(error, KEY)


def held_by_frames(error: BaseException, key: str) -> list[str]:
    """Functions on the way of `error`, in this package, that hold the key in a variable."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    package = [frame for frame in frames if "runs_app/optimiser/llm" in frame.f_code.co_filename]
    return [f.f_code.co_name for f in package if key in repr(list(f.f_locals.values()))]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=401, message=f"Incorrect API key provided: {KEY}"),
        Answer(status=400, message="x" * 330 + KEY),
        Answer(status=400, body=f"you sent Bearer {KEY}", content_type="text/plain"),
        Answer(None, refusal=f"I will not repeat {KEY}"),
        Answer(f"{KEY} {KEY}", drop="after", chunk_chars=100),
        Answer("abc", error_after=1, message=KEY),
        Answer(drop="before"),
        Answer("late", delay_s=5),
    ],
)
def test_no_error_and_no_log_holds_the_key(
    caller: Caller, caplog: pytest.LogCaptureFixture, answer: Answer
) -> None:
    caplog.set_level(logging.DEBUG)
    with ScriptedEndpoint([answer], key=KEY) as endpoint:
        error = caller.fail(endpoint.base_url, key_variable=VARIABLE, timeout_s=0.3)
    told = [repr(error), str(error), error.reason, error.text, caplog.text]
    told += traceback.format_exception(error)
    assert KEY[:12] not in " ".join(told)
    assert (error.__context__, error.__cause__) == (None, None)
    assert not held_by_frames(error, KEY)
    assert "openai" in caplog.text, "the libraries' logs are looked through as well"


def test_a_key_of_no_use_spoils_no_kernel(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "x")
    kernel = 'extern "C" void f(float* x) { x[threadIdx.x] = 0; }'
    with ScriptedEndpoint([Answer(kernel)]) as endpoint:
        assert caller.ask(endpoint.base_url, key_variable=VARIABLE).text == kernel
    monkeypatch.setenv(VARIABLE, "acc")
    with ScriptedEndpoint([Answer(status=401)]) as endpoint:
        reason = caller.fail(endpoint.base_url, key_variable=VARIABLE).reason
    assert "account" in reason


def test_openais_keys_go_to_nobody_else(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "BASE_URL"):
        monkeypatch.setenv(f"OPENAI_{name}", f"private-{name}")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Private: private-header")
    with ScriptedEndpoint([Answer("yes")]) as endpoint:
        caller.ask(endpoint.base_url)
        [asked] = endpoint.asked
    assert "private" not in str(asked.headers)
    assert "authorization" not in asked.headers
    assert asked.headers["user-agent"].startswith("kbench ")
