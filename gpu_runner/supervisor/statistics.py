"""Medians with bootstrap confidence intervals over calls and over processes."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Sequence

from gpu_runner.data.evaluation import Measurement

RESAMPLES = 500
CONFIDENCE = 0.95


def measure(processes: Sequence[Sequence[float]], rng: random.Random) -> Measurement:
    """Median of the processes' medians, with a two-level bootstrap interval, in ns.

    Processes are drawn with replacement, and calls within each, so that the interval holds the
    spread between processes as well as that between calls.
    """
    centre = statistics.median([statistics.median(times) for times in processes])
    draws = sorted(_resample(processes, rng) for _ in range(RESAMPLES))
    edge = (1 - CONFIDENCE) / 2
    low = draws[int(edge * (RESAMPLES - 1))]
    high = draws[math.ceil((1 - edge) * (RESAMPLES - 1))]
    return Measurement(
        median_ns=centre,
        low_ns=min(low, centre),
        high_ns=max(high, centre),
        calls=sum(len(times) for times in processes),
    )


def _resample(processes: Sequence[Sequence[float]], rng: random.Random) -> float:
    drawn = rng.choices(processes, k=len(processes)) if len(processes) > 1 else processes
    return statistics.median(
        [statistics.median(rng.choices(times, k=len(times))) for times in drawn]
    )


def median_precision(times: Sequence[float]) -> float:
    """Half the distribution-free 95 % interval of the median, over the median.

    From order statistics (ranks n/2 +- 0.98 sqrt(n)), so that it can be asked after every call.
    Infinite below six calls, where no such interval exists.
    """
    count = len(times)
    if count < 6:
        return math.inf
    ordered = sorted(times)
    reach = 0.98 * math.sqrt(count)
    low = ordered[max(0, math.floor(count / 2 - reach))]
    high = ordered[min(count - 1, math.ceil(count / 2 + reach))]
    return (high - low) / 2 / statistics.median(ordered)


def geometric_mean(values: Iterable[float]) -> float | None:
    """Geometric mean of positive values, or None where there are none."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None
