"""No endpoint counts more tokens than the bound, and the site holds back no fewer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs_app.optimiser.evolve import budget
from runs_app.optimiser.evolve.commands import Message
from runs_app.optimiser.evolve.config import Budget, ModelSpec
from runs_app.optimiser.llm import tokens


def test_the_bound_counts_bytes() -> None:
    assert tokens.upper_bound_tokens([{"role": "user", "content": "x" * 920}]) == 1000
    assert tokens.upper_bound_tokens([{"role": "user", "content": "ä" * 460}]) == 1000
    assert tokens.upper_bound_tokens([]) == 64


@pytest.mark.parametrize("texts", [[], [""], ["hi"], ["be brief", "ä" * 460]])
@pytest.mark.parametrize("extra", [{}, {"reasoning_effort": "low"}, {"schema": {"what": "ö" * 99}}])
def test_a_run_holds_back_what_an_endpoint_may_count(
    texts: list[str], extra: dict[str, Any]
) -> None:
    sent = [{"role": "user", "content": text} for text in texts]
    added = tokens.extra_tokens(extra)
    assert added == (len(json.dumps(extra)) if extra else 0)
    model = ModelSpec(name="any", extra_tokens=added)
    bound = budget.tokens_bound(Message(role="user", content=text) for text in texts)
    held = budget.allow(Budget(), budget.Spent(0.0, 0, 0), model, bound, wanted=100)
    assert held.worst_tokens - 100 == tokens.upper_bound_tokens(sent, extra)
