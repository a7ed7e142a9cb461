"""What calls cost, and what budgets still pay."""

from __future__ import annotations

from decimal import Decimal

import pytest

from runs_app.llm import price
from tests.unit.runs_app.llm.conftest import make_endpoint

PROMPT = [{"role": "user", "content": "x" * 920}]  # at most 920 + 16 + 64 = 1000 tokens


def test_cost_is_exact() -> None:
    endpoint = make_endpoint(price_in_usd=Decimal("0.15"), price_out_usd=Decimal("0.6"))
    assert price.cost_usd(endpoint, 1, 1) == Decimal("0.00000075")
    assert price.cost_usd(endpoint, 2_000_000, 500_000) == Decimal("0.6")


def test_the_bound_counts_bytes() -> None:
    assert price.upper_bound_tokens(PROMPT) == 1000
    assert price.upper_bound_tokens([{"role": "user", "content": "ä" * 460}]) == 1000
    assert price.upper_bound_tokens([]) == 64
    assert price.worst_case_usd(make_endpoint(), PROMPT, 500) == Decimal("0.006")


@pytest.mark.parametrize(
    ("remaining_usd", "remaining_tokens", "wanted", "expected"),
    [
        (None, None, 4000, 4000),
        (None, None, 90_000, 8192),  # the endpoint's own limit
        (Decimal("0.010"), None, 4000, 1000),
        (Decimal("0.004048"), None, 4000, 256),
        (Decimal("0.004047"), None, 4000, 0),
        (Decimal(0), None, 4000, 0),
        (Decimal(-1), None, 4000, 0),
        (None, 3000, 4000, 2000),
        (None, 1256, 4000, 256),
        (None, 1255, 4000, 0),
        (None, 0, 4000, 0),
        (Decimal("0.010"), 1500, 4000, 500),
        (None, None, 100, 100),  # a judge's short answer
        (None, 1099, 100, 0),
        (None, None, 0, 0),
    ],
)
def test_what_a_budget_pays(
    remaining_usd: Decimal | None, remaining_tokens: int | None, wanted: int, expected: int
) -> None:
    endpoint = make_endpoint()
    tokens = price.affordable_tokens(endpoint, PROMPT, remaining_usd, remaining_tokens, wanted)
    assert tokens == expected
    if tokens and remaining_usd is not None:
        assert price.worst_case_usd(endpoint, PROMPT, tokens) <= remaining_usd
        assert price.worst_case_usd(endpoint, PROMPT, tokens + 1) > remaining_usd or (
            remaining_tokens is not None
        )


def test_a_free_endpoint_needs_no_money() -> None:
    free = make_endpoint(price_in_usd=Decimal(0), price_out_usd=Decimal(0))
    assert price.affordable_tokens(free, PROMPT, Decimal(0), None, 4000) == 4000
    assert price.affordable_tokens(free, PROMPT, Decimal("-0.01"), None, 4000) == 0


def test_the_context_window_leaves_room_for_the_prompt() -> None:
    small = make_endpoint(context_tokens=2000)
    assert price.affordable_tokens(small, PROMPT, None, None, 4000) == 2000 - 460 - 16
    tiny = make_endpoint(context_tokens=700)
    assert price.affordable_tokens(tiny, PROMPT, None, None, 4000) == 0
