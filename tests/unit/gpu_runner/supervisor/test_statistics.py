"""Medians, intervals and means."""

from __future__ import annotations

import math
import random

import pytest

from gpu_runner.supervisor.statistics import geometric_mean, measure, median_precision


def test_interval_holds_the_median_and_shrinks_with_more_calls() -> None:
    rng = random.Random(1)
    few = [[rng.gauss(1000, 50) for _ in range(10)]]
    many = [[rng.gauss(1000, 50) for _ in range(1000)]]
    narrow, wide = measure(many, rng), measure(few, rng)
    assert narrow.low_ns <= narrow.median_ns <= narrow.high_ns
    assert narrow.relative_half_width < wide.relative_half_width / 3


def test_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    rng = random.Random(2)
    hits = 0
    for _ in range(200):
        found = measure([[rng.gauss(1000, 50) for _ in range(30)]], rng)
        hits += found.low_ns <= 1000 <= found.high_ns
    assert 0.86 <= hits / 200 <= 1.0


def test_processes_that_disagree_widen_the_interval() -> None:
    rng = random.Random(3)
    same = [[1000.0 + i % 3 for i in range(30)] for _ in range(3)]
    apart = [[centre + i % 3 for i in range(30)] for centre in (900.0, 1000.0, 1100.0)]
    assert measure(same, rng).relative_half_width < 0.005
    assert measure(apart, rng).relative_half_width > 0.05


def test_one_outlier_moves_nothing() -> None:
    rng = random.Random(4)
    times = [1000.0 + i % 5 for i in range(50)] + [1e9]
    assert measure([times], rng).median_ns == pytest.approx(1002, abs=2)


def test_median_precision_is_infinite_below_six_calls() -> None:
    assert median_precision([1.0] * 5) == math.inf
    assert median_precision([1.0] * 6) == 0.0


def test_geometric_mean() -> None:
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert geometric_mean([]) is None
