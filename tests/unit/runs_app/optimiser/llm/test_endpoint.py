"""Endpoints that could not be called, or would be called with somebody's secrets, are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scripted_endpoint import Answer, ScriptedEndpoint
from tests.unit.runs_app.optimiser.llm.conftest import Caller, make_endpoint


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("api_name", ""),
        ("base_url", ""),
        ("base_url", "ftp://host/v1"),
        ("base_url", "https://"),
        ("base_url", "https://me:secret@host/v1"),
        ("base_url", "https://me@host/v1"),
        ("base_url", "https://host/v1?key=secret"),
        ("base_url", "https://host:99999/v1"),
        ("base_url", "https://host:0/v1"),
        ("base_url", "https://[::1/v1"),
        ("base_url", f"https://{'a' * 70}.example/v1"),
        ("base_url", "https://host/v 1"),
        ("base_url", "file:///etc/passwd"),
        ("key_variable", "MY KEY"),
        ("key_variable", "sk-0123"),
        ("max_output_tokens", 0),
        ("timeout_s", 0),
        ("timeout_s", float("nan")),
        ("token_parameter", "n"),
        ("extra", {"max_tokens": 10**9}),
        ("extra", {"n": 5}),
        ("extra", {"model": "dearer"}),
        ("extra", {"bias": float("nan")}),
        ("extra", {"what": object()}),
    ],
)
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
