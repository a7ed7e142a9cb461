"""Speedups as pages print them."""

from __future__ import annotations

import pytest

from tasks_app.templatetags.display import speedup


@pytest.mark.parametrize(
    ("value", "spread", "sign"),
    [(0.99, None, "≈"), (0.97, None, "▼"), (0.97, 0.07, "≈"), (1.5, 0.5, "≈"), (1.5, 0.1, "▲")],
)
def test_a_speedup_is_neutral_while_its_own_interval_holds_1(
    value: float, spread: float | None, sign: str
) -> None:
    assert sign in speedup(value, spread=spread)
