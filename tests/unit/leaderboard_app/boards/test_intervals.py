"""Intervals from a result's document."""

from __future__ import annotations

import math
from typing import Any

import pytest

from leaderboard_app.boards.intervals import spread, spreads


def times(time_ns: float, relative: float) -> dict[str, float]:
    """A measurement as JSON."""
    low, high = time_ns * (1 - relative), time_ns * (1 + relative)
    return {"time_ns": time_ns, "low_ns": low, "high_ns": high, "calls": 30}


def row(**overrides: Any) -> dict[str, Any]:
    """A public workload twice as fast as eager, 1 % noise on both sides."""
    return {
        "hidden": False,
        "measurement": times(1000, 0.01),
        "baselines": {"eager": times(2000, 0.01), "compiled": times(3000, 0.2)},
    } | overrides


def test_a_speedup_has_the_noise_of_both_its_times() -> None:
    low, high = spreads({"workloads": [row()]})["eager"]
    assert high == pytest.approx(math.exp(math.hypot(math.log(1.01), math.log(1 / 0.99))))
    assert low == pytest.approx(1 / high)


def test_best_is_the_fastest_baseline() -> None:
    found = spreads({"workloads": [row()]})
    assert found["best"] == found["eager"]
    assert found["compiled"] != found["eager"]


def test_hidden_and_unmeasured_workloads_do_not_count() -> None:
    noisy = row(hidden=True, measurement=times(1000, 0.5))
    document = {"workloads": [row(), noisy, row(measurement=None)]}
    assert spreads(document) == spreads({"workloads": [row()]})
    assert spreads({"workloads": [noisy]}) == {}


def test_without_factors_a_value_is_exact() -> None:
    assert spread(2.0, None).low == 2.0
    estimate = spread(2.0, (0.5, 1.5))
    assert (estimate.low, estimate.high) == (1.0, 3.0)
