"""Geometric means with intervals over what could have been drawn otherwise: repeats, or tasks."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

BOOTSTRAP_FROM = 10
"""Fewer values than this get an interval by Student's t: a bootstrap of so few is too narrow."""

RESAMPLES = 4000
_T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306)
"""97.5 % points of Student's t with 1 to 8 degrees of freedom."""


@dataclass(frozen=True)
class Interval:
    """A geometric mean with its 95 % interval; `method` is "t", "bootstrap" or, for one, "none"."""

    mean: float
    low: float
    high: float
    method: str

    def overlaps(self, other: Interval) -> bool:
        """Whether neither is shown to be better. One value has no interval, so it shows nothing."""
        if "none" in (self.method, other.method):
            return True
        return self.low <= other.high and other.low <= self.high


@lru_cache(maxsize=256)  # chosen: the pairs of some pages
def geometric_interval(values: tuple[float, ...]) -> Interval | None:
    """Geometric mean of positive `values` with a 95 % interval; None for no values.

    On logarithms: Student's t below `BOOTSTRAP_FROM` values, else percentiles of `RESAMPLES`
    resamples, the same for the same values. Raises `ValueError` for a value that is not positive.
    """
    if not values:
        return None
    if min(values) <= 0:
        raise ValueError("values: must be positive")
    logs = [math.log(value) for value in values]
    mean = math.fsum(logs) / len(logs)
    if len(logs) == 1:
        return Interval(math.exp(mean), math.exp(mean), math.exp(mean), "none")
    if len(logs) < BOOTSTRAP_FROM:
        variance = math.fsum((x - mean) ** 2 for x in logs) / (len(logs) - 1)
        half = _T_975[len(logs) - 2] * math.sqrt(variance / len(logs))
        return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), "t")
    low, high = _percentiles(logs)
    return Interval(math.exp(mean), math.exp(low), math.exp(high), "bootstrap")


def _percentiles(logs: Sequence[float]) -> tuple[float, float]:
    rng = random.Random(0)  # noqa: S311 - resampling, no secret
    size = len(logs)
    means = sorted(math.fsum(rng.choices(logs, k=size)) / size for _ in range(RESAMPLES))
    cut = round(RESAMPLES * 0.025)
    return means[cut], means[RESAMPLES - 1 - cut]
