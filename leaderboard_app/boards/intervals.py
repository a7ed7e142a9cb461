"""Confidence intervals of speedups and times, from a result's document."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from leaderboard_app.boards.ranking import Estimate, geometric_mean

Factors = tuple[float, float]
"""From a value down to the low end of its interval, and up to the high end."""

LATENCY = "latency"
"""Key of the time in `spreads`; the other keys are baselines and "best"."""


def spreads(document: Mapping[str, Any]) -> dict[str, Factors]:
    """Factors from the middle down to the low end and up to the high end, by quantity.

    `document` is an encoded `EvaluationResult`; the public workloads count.
    """
    rows = [
        row
        for row in document.get("workloads", [])
        if not row.get("hidden") and row.get("measurement")
    ]
    found = {LATENCY: [_estimate(row["measurement"]) for row in rows]}
    for row in rows:
        own = _estimate(row["measurement"])
        times = {name: _estimate(value) for name, value in row.get("baselines", {}).items()}
        if times:
            times["best"] = min(times.values(), key=lambda estimate: estimate.value)
        for name, time in times.items():
            found.setdefault(name, []).append(_quotient(time, own))
    return {name: _factors(estimates) for name, estimates in found.items() if estimates}


def spread(value: float, factors: Factors | None) -> Estimate:
    """`value` with the interval that `factors` make; exact where there are none."""
    low, high = factors or (1.0, 1.0)
    return Estimate(value, value * low, value * high)


def _estimate(measurement: Mapping[str, Any]) -> Estimate:
    return Estimate(measurement["time_ns"], measurement["low_ns"], measurement["high_ns"])


def _quotient(above: Estimate, below: Estimate) -> Estimate:
    """Quotient of two independent estimates, their errors added in quadrature as logarithms."""
    value = above.value / below.value
    down = math.hypot(math.log(above.value / above.low), math.log(below.high / below.value))
    up = math.hypot(math.log(above.high / above.value), math.log(below.value / below.low))
    return Estimate(value, value * math.exp(-down), value * math.exp(up))


def _factors(estimates: Iterable[Estimate]) -> Factors:
    mean = geometric_mean(list(estimates))
    if mean is None:
        return (1.0, 1.0)
    return (mean.low / mean.value, mean.high / mean.value)
