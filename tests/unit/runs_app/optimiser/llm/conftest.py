"""Fixtures of the tests about calls: a real server, the real client, and a clock of their own."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from runs_app.optimiser.llm.client import Completion, complete
from runs_app.optimiser.llm.endpoint import Endpoint
from runs_app.optimiser.llm.errors import CallError

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]


def make_endpoint(base_url: str = "http://127.0.0.1:1/v1", **overrides: Any) -> Endpoint:
    """An endpoint without key."""
    fields: dict[str, Any] = {
        "name": "scripted", "api_name": "scripted-1", "base_url": base_url, "timeout_s": 5.0,
    }  # fmt: skip
    return Endpoint(**(fields | overrides))


@dataclass
class Caller:
    """Calls without waiting between attempts; remembers how long it should have waited."""

    slept: list[float] = field(default_factory=list)

    def ask(
        self, base_url: str, arguments: dict[str, Any] | None = None, **over: Any
    ) -> Completion:
        """Call the endpoint at `base_url`; `over` changes the endpoint, `arguments` the call."""
        given: dict[str, Any] = {
            "temperature": 0.7, "max_tokens": 1000, "seed": 11, "call_id": "run-1-call-2",
            "sleep": self.slept.append, "rng": random.Random(1),
        }  # fmt: skip
        return complete(make_endpoint(base_url, **over), MESSAGES, **(given | (arguments or {})))

    def fail(
        self, base_url: str, arguments: dict[str, Any] | None = None, **over: Any
    ) -> CallError:
        """The error in which such a call ends."""
        with pytest.raises(CallError) as caught:
            self.ask(base_url, arguments, **over)
        return caught.value


@pytest.fixture
def caller() -> Caller:
    """A caller that does not wait."""
    return Caller()
