"""The bandit spends where it gains the most for a dollar."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from runs_app.optimiser.evolve.bandit import Arm, choose, gain
from runs_app.optimiser.evolve.config import ModelSpec


def played(skills: dict[str, float], prices: dict[str, float], rounds: int = 400) -> Counter[str]:
    """Models that succeed with these chances, and cost so many cents a call."""
    dice = random.Random(1)
    arms = {
        name: Arm(ModelSpec(name=name, price_in_usd=2 * cents, price_out_usd=cents))
        for name, cents in prices.items()
    }
    chosen: Counter[str] = Counter()
    for _ in range(rounds):
        name = choose(list(arms.values()), dice).name
        arms[name].add(float(dice.random() < skills[name]), prices[name] / 100)
        chosen[name] += 1
    return chosen


def test_of_two_equal_models_it_prefers_the_cheaper() -> None:
    chosen = played({"cheap": 0.3, "dear": 0.3}, {"cheap": 1.0, "dear": 4.0})
    assert chosen["cheap"] > 0.9 * 400


def test_of_two_that_cost_the_same_it_prefers_the_better() -> None:
    chosen = played({"good": 0.5, "bad": 0.1}, {"good": 1.0, "bad": 1.0})
    assert chosen["good"] > 0.85 * 400


def test_a_model_that_is_worth_its_price_wins() -> None:
    chosen = played({"good": 0.6, "bad": 0.03}, {"good": 3.0, "bad": 1.0})
    assert chosen["good"] > 0.7 * 400


def test_free_models_compete_by_reward_alone() -> None:
    chosen = played({"good": 0.5, "bad": 0.1}, {"good": 0.0, "bad": 0.0})
    assert chosen["good"] > 0.85 * 400


def test_what_is_free_does_not_win_by_that_alone() -> None:
    chosen = played({"free": 0.01, "paid": 0.6}, {"free": 0.0, "paid": 1.0}, rounds=1000)
    assert chosen["paid"] > chosen["free"]


@pytest.mark.parametrize("arms", [[Arm(ModelSpec(name="only"))]])
def test_one_model_is_chosen(arms: Sequence[Arm]) -> None:
    assert choose(arms, random.Random(0)).name == "only"


def test_gain_is_one_where_the_time_is_halved() -> None:
    assert gain(100.0, 50.0) == 1.0
    assert gain(100.0, 10.0) == 1.0
    assert gain(100.0, 100.0 / 2**0.5) == pytest.approx(0.5)
    assert gain(100.0, 100.0) == gain(100.0, 120.0) == gain(100.0, None) == 0.0
