"""Typical times with bootstrap confidence intervals over calls and over processes."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from gpu_runner.data.evaluation import Measurement
from gpu_runner.data.protocol import CONFIDENCE, CPU_QUANTILE, RESAMPLES
from gpu_runner.data.verdict import DeviceKind


@dataclass(frozen=True)
class Estimator:
    """How many calls in several processes become one time.

    fastest: a process's time is that of its fastest call, else the median of its calls. quantile:
    the evaluation's time is this quantile of its processes' times.
    """

    fastest: bool
    quantile: float

    def __str__(self) -> str:
        """The definition of a time, as it stands in results."""
        part = "median" if self.quantile == 0.5 else f"quantile {self.quantile:g}"
        return f"{part} of the processes' {'fastest calls' if self.fastest else 'medians'}"

    def of_process(self, times: Sequence[float]) -> float:
        """A process's time."""
        return min(times) if self.fastest else statistics.median(times)

    def of_all(self, times: Sequence[float]) -> float:
        """The time of processes that have these times."""
        ordered = sorted(times)
        place = self.quantile * (len(ordered) - 1)
        low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
        return low + (high - low) * (place % 1)

    def __call__(self, processes: Sequence[Sequence[float]]) -> float:
        """The time of an evaluation."""
        return self.of_all([self.of_process(times) for times in processes])

    def held(self, held: Sequence[float]) -> float:
        """Of what calls held a process: what bounds its time from below.

        The least where the fastest counts, not that of the fastest call: what a call takes beyond
        its kernel scatters, and by chance or not it is more where a kernel is rarely that fast.
        """
        return min(held) if self.fastest else statistics.median(held)


ESTIMATORS = {
    DeviceKind.CUDA: Estimator(fastest=False, quantile=0.5),
    DeviceKind.CPU: Estimator(fastest=True, quantile=CPU_QUANTILE),
}
"""On a CPU, others on the same core, cache and memory only ever slow a call down, by a third to a
half for seconds at a time, and half of all calls may be such: then medians wander, and fastest
calls do not (Chen and Revels, Robust benchmarking in noisy environments, 2016). A GPU is not
shared; its times scatter to both sides."""


def measure(
    processes: Sequence[Sequence[float]], estimator: Estimator, rng: random.Random
) -> Measurement:
    """The processes' time with a two-level bootstrap interval, in ns.

    Processes are drawn with replacement, and calls within each, so that the interval holds the
    spread between processes as well as that between calls.
    """
    centre = estimator(processes)
    draws = sorted(_resample(processes, estimator, rng) for _ in range(RESAMPLES))
    edge = (1 - CONFIDENCE) / 2
    low = draws[int(edge * (RESAMPLES - 1))]
    high = draws[math.ceil((1 - edge) * (RESAMPLES - 1))]
    return Measurement(
        time_ns=centre,
        low_ns=min(low, centre),
        high_ns=max(high, centre),
        calls=sum(len(times) for times in processes),
    )


def _resample(
    processes: Sequence[Sequence[float]], estimator: Estimator, rng: random.Random
) -> float:
    drawn = rng.choices(processes, k=len(processes)) if len(processes) > 1 else processes
    return estimator([rng.choices(times, k=len(times)) for times in drawn])


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
