"""Medians, intervals and means."""

from __future__ import annotations

import math
import random

import pytest

from gpu_runner.data.scores import geometric_mean
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.statistics import ESTIMATORS, Estimator, measure, median_precision

MEDIANS, FASTEST = ESTIMATORS[DeviceKind.CUDA], ESTIMATORS[DeviceKind.CPU]


def test_interval_holds_the_median_and_shrinks_with_more_calls() -> None:
    rng = random.Random(1)
    few = [[rng.gauss(1000, 50) for _ in range(10)]]
    many = [[rng.gauss(1000, 50) for _ in range(1000)]]
    narrow, wide = measure(many, MEDIANS, rng), measure(few, MEDIANS, rng)
    assert narrow.low_ns <= narrow.time_ns <= narrow.high_ns
    assert narrow.relative_half_width < wide.relative_half_width / 3
    outlier = [1000.0 + i % 5 for i in range(50)] + [1e9]
    assert measure([outlier], MEDIANS, rng).time_ns == pytest.approx(1002, abs=2)


def test_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    rng = random.Random(2)
    hits = 0
    for _ in range(200):
        found = measure([[rng.gauss(1000, 50) for _ in range(30)]], MEDIANS, rng)
        hits += found.low_ns <= 1000 <= found.high_ns
    assert 0.86 <= hits / 200 <= 1.0


def test_processes_that_disagree_widen_the_interval() -> None:
    rng = random.Random(3)
    same = [[1000.0 + i % 3 for i in range(30)] for _ in range(3)]
    apart = [[centre + i % 3 for i in range(30)] for centre in (900.0, 1000.0, 1100.0)]
    assert measure(same, MEDIANS, rng).relative_half_width < 0.005
    assert measure(apart, MEDIANS, rng).relative_half_width > 0.05


def test_neighbours_of_a_processor_move_a_fastest_call_little_and_a_median_much() -> None:
    rng = random.Random(5)

    def processes() -> list[list[float]]:
        """Calls of 1000 ns, half as long again while another works on the same core."""
        return [
            [rng.gauss(1000, 5) * (1.5 if rng.random() < share else 1) for _ in range(40)]
            for share in (rng.choice([0.1, 0.5, 0.9]) for _ in range(6))
        ]

    def spread(estimator: Estimator) -> float:
        times = [measure(processes(), estimator, rng).time_ns for _ in range(40)]
        return max(times) / min(times) - 1

    assert spread(FASTEST) < 0.02
    assert spread(MEDIANS) > 0.2


def test_the_least_that_held_bounds_the_fastest_and_means_and_precision_have_their_edges() -> None:
    held = [35.0, 15.0, 1.0, 2.0]
    assert (FASTEST.held(held), MEDIANS.held(held)) == (1.0, 8.5)
    assert median_precision([1.0] * 5) == math.inf
    assert median_precision([1.0] * 6) == 0.0
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert geometric_mean([]) is None
