"""The bandit spends where it gains the most for a dollar; and votes against hardware."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from gpu_runner.data.verdict import Verdict
from runs_app.optimiser.evolve.archive import Arm, choose, gain
from runs_app.optimiser.evolve.config import ModelSpec
from runs_app.optimiser.evolve.judging import VERIFIERS, Confusion, calibration, truth


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


EXPECTED = {
    Verdict.CORRECT: (True, True, True),
    Verdict.COMPILED: (True, None, None),
    Verdict.COMPILE_ERROR: (False, None, None),
    Verdict.RUNTIME_ERROR: (True, False, None),
    Verdict.MEMORY_LIMIT: (True, False, None),
    Verdict.VIOLATION: (True, False, None),
    Verdict.TIME_LIMIT: (True, False, None),
    Verdict.TOO_SLOW: (True, True, None),
    Verdict.WRONG_RESULT: (True, True, False),
    Verdict.WRONG_SHAPE: (True, True, False),
    Verdict.WRONG_DTYPE: (True, True, False),
    Verdict.UNSTABLE: (None, None, None),
    Verdict.SYSTEM_ERROR: (None, None, None),
}


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_says_what_a_verifier_should_have_voted(verdict: Verdict) -> None:
    assert tuple(truth(name, verdict) for name in VERIFIERS) == EXPECTED[verdict]


def test_a_confusion_counts_votes_and_truths() -> None:
    votes = [(False, False)] * 3 + [(False, True)] * 1 + [(True, False)] * 2 + [(True, True)] * 4
    found = Confusion.of(votes)
    assert (found.caught, found.false_alarms, found.missed, found.passed) == (3, 1, 2, 4)
    shares = (found.accuracy, found.precision, found.recall, found.always_passes)
    assert (found.total, *shares) == (10, *map(pytest.approx, (0.7, 0.75, 0.6, 0.5)))
    found = Confusion.of([])
    assert truth("compile", "") is None
    assert (found.accuracy, found.precision, found.recall, found.always_passes) == (None,) * 4


def test_scores_fall_into_bins() -> None:
    bins = calibration([(0.0, False), (1 / 3, False), (2 / 3, True), (1.0, True), (1.0, False)])
    assert [b.count for b in bins] == [1, 1, 0, 1, 2]
    assert [b.correct_share for b in bins] == [0.0, 0.0, None, 1.0, 0.5]
    assert bins[4].mean_score == pytest.approx(1.0)
    assert calibration([(0.6, True)])[3].count == 1
