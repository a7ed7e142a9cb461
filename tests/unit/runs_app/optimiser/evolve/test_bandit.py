"""The bandit spends where it gains the most for a dollar."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from runs_app.optimiser.evolve.bandit import Arm, choose, gain
from runs_app.optimiser.evolve.config import ModelSpec


def played(skills: tuple[float, ...], prices: tuple[float, ...], rounds: int = 1000) -> int:
    """How often the first is asked of models with these chances, at so many cents a call."""
    dice = random.Random(1)
    arms = [
        Arm(ModelSpec(name=str(n), price_in_usd=2 * cents, price_out_usd=cents))
        for n, cents in enumerate(prices)
    ]
    chosen: Counter[int] = Counter()
    for _ in range(rounds):
        place = int(choose(arms, dice).name)
        arms[place].add(float(dice.random() < skills[place]), prices[place] / 100)
        chosen[place] += 1
    return chosen[0]


@pytest.mark.parametrize(
    ("skills", "prices", "share"),
    [
        ((0.3, 0.3), (1.0, 4.0), 0.9),  # of two that are as good, the cheaper
        ((0.5, 0.1), (1.0, 1.0), 0.85),  # of two that cost the same, the better
        ((0.6, 0.03), (3.0, 1.0), 0.7),  # one that is worth its price
        ((0.5, 0.1), (0.0, 0.0), 0.85),
        ((0.6, 0.01), (1.0, 0.0), 0.5),  # what is free does not win by that alone
    ],
)
def test_it_prefers_what_gains_most(
    skills: tuple[float, float], prices: tuple[float, float], share: float
) -> None:
    assert played(skills, prices) > share * 1000


def test_gain_is_one_where_the_time_is_halved() -> None:
    assert gain(100.0, 50.0) == 1.0
    assert gain(100.0, 10.0) == 1.0
    assert gain(100.0, 100.0 / 2**0.5) == pytest.approx(0.5)
    assert gain(100.0, 100.0) == gain(100.0, 120.0) == gain(100.0, None) == 0.0
