"""What endpoints and calls are refused, and that no endpoint counts more tokens than the bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs_app.optimiser.evolve import budget
from runs_app.optimiser.evolve.commands import Message
from runs_app.optimiser.evolve.config import Budget, ModelSpec
from runs_app.optimiser.llm import tokens
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
    "base_url", ["http://127.0.0.1:8000/v1", "https://host.example", "http://[::1]:8000/v1/"]
)
def test_good_addresses(base_url: str) -> None:
    assert make_endpoint(base_url).base_url == base_url


@pytest.mark.parametrize(
    ("argument", "value"),
    [("max_tokens", 0), ("call_id", ""), ("call_id", "two words"), ("call_id", "a\r\nX-Evil: 1")],
)
def test_arguments_of_a_call(caller: Caller, argument: str, value: Any) -> None:
    with ScriptedEndpoint([Answer("yes")]) as endpoint:
        with pytest.raises(ValueError, match=argument):
            caller.ask(endpoint.base_url, {argument: value})
        assert endpoint.asked == []


def test_the_bound_counts_bytes() -> None:
    assert tokens.upper_bound_tokens([{"role": "user", "content": "x" * 920}]) == 1000
    assert tokens.upper_bound_tokens([{"role": "user", "content": "ä" * 460}]) == 1000
    assert tokens.upper_bound_tokens([]) == 64


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
