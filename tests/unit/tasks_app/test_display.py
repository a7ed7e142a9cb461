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


def test_a_speedup_says_what_it_is_over() -> None:
    assert "faster than the baseline" in speedup(2.0)
    assert "faster than the seed" in speedup(2.0, over="seed")
    assert "slower than the parent" in speedup(0.5, over="parent")
    assert "as fast as the seed" in speedup(1.0, over="seed")
