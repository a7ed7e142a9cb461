"""The outside clock: what the coordinator's own waiting says of a kernel's time; pure."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu_runner.data.evaluation import Measurement
from gpu_runner.data.integrity import Burst, OutsideTime
from gpu_runner.data.verdict import Abi, DeviceKind


@dataclass(frozen=True)
class Margin:
    """What bursts and single calls may differ by though both are honest.

    relative: part of the time that clocks, caches and power leave open between them. least_ns: of
    the subtraction in a burst. single_ns, single_relative: the same of a call released alone, where
    that can be compared with an empty one; gate_ns, gate_relative: of one that passed the gate.
    large_alone: small bursts say nothing.
    """

    relative: float
    least_ns: float
    single_ns: float | None = None
    single_relative: float = 0.02
    gate_ns: float = 1_000.0
    gate_relative: float = 0.02
    large_alone: bool = False


MARGINS = {
    (DeviceKind.CUDA, Abi.C): Margin(0.04, 500.0, large_alone=True),
    (DeviceKind.CUDA, Abi.TORCH): Margin(0.08, 500.0, large_alone=True),
    (DeviceKind.CPU, Abi.C): Margin(0.06, 2_000.0, 5_000.0),
    (DeviceKind.CPU, Abi.TORCH): Margin(0.3, 5_000.0, gate_ns=5_000.0, gate_relative=0.03),
}
PRECISE = 0.06
"""Relative error from which on single calls alone bound a CPU kernel's time."""

SPREADS = 2.0
"""Interquartile ranges of empty calls that a single call may cost beyond its kernel: it finds the
runner's own code and data out of the caches."""

GATE_SHARE = 0.1
"""Part of an empty call's time through the gate that a kernel's may differ by: that of a torch
extension holds some 50 us of Python, which hands out its result."""

WHOLE_SHARE = 0.2
"""The same of an empty call's time from when its process is let run: some 0.4 ms of Python. Beside
its kernel, the least of an honest extension's calls took 50 us less to 30 us more of it, and 100 us
more where its kernel writes 76 MB."""

GATE_PYTHON_NS, WHOLE_PYTHON_NS, COPIES_SHARE = 100_000.0, 500_000.0, 0.03
"""So much of an empty call is Python at most; the rest copies tensors, which differs less."""

DEVIATIONS = 1.5
"""Median deviations of the empty kernel that a burst may be off. That is little for one burst, but
the bound is the smallest of several, and is measured again before it accuses."""

SCATTER, SCATTER_NS = 0.15, 10_000.0
"""Part of a CPU kernel's bound, and time, by which a burst's mean may exceed its fastest call where
single calls scatter: a pool of threads is woken sooner or later. No more than both: whoever rests
before single calls makes them scatter."""

UNSEEN = "the host is too busy for the coordinator's own clock to check the claimed times"

_TICK_NS = 1.0  # clocks count nanoseconds, and means of what they say are rounded

_WIDEST = 0.1  # of a claimed interval: a runner may claim any numbers

BLIND, SEEN_NS = 0.25, 200_000.0
"""An error beyond the margin of more than this part of a bound from `SEEN_NS` on tells of a
moment in which the clock was calibrated badly: it usually is half of that at most."""

HOST_COUNTS_NS = 50_000.0
"""From here on, a kernel that its host launches too slowly is given the coordinator's time."""


@dataclass(frozen=True, kw_only=True)
class NullTime:
    """How long bursts of a kernel that does nothing hold the runner, in ns.

    The line `intercept_ns + slope_ns * calls`, and the median deviation from it. host_ns: how long
    the host takes to queue a single call of it; single_ns: how long that holds the runner, and
    spread_ns: the interquartile range of it; gate_ns: how long it takes to pass the gate, whole_ns:
    the same from when the process was let run. idle_ns: what a call costs a thread that only waits.
    """

    intercept_ns: float
    slope_ns: float
    deviation_ns: float
    host_ns: float = 0.0
    single_ns: float = 0.0
    spread_ns: float = 0.0
    gate_ns: float = 0.0
    whole_ns: float = 0.0
    idle_ns: float = 0.0

    def at(self, calls: int) -> float:
        """The time of a burst of so many calls."""
        return self.intercept_ns + self.slope_ns * calls


def null_time(
    bursts: Sequence[Burst],
    host_ns: Sequence[float] = (0.0,),
    single_ns: Sequence[float] = (0.0,),
    gate_ns: Sequence[float] = (0.0,),
    whole_ns: Sequence[float] = (0.0,),
) -> NullTime:
    """The line of the typical slope through the lower quartile. Raises `ValueError` without bursts.

    The slope is the median of those of all pairs of bursts (Theil and Sen), so that single waits
    that a busy host drew out do not tilt it.
    """
    if not bursts:
        raise ValueError("no burst of the empty kernel")
    slope = max(0.0, typical_slope(bursts))
    rest = sorted(b.held_ns - slope * b.calls for b in bursts)
    intercept = rest[len(rest) // 4]
    off = statistics.median(abs(value - intercept) for value in rest)
    ordered = sorted(single_ns)
    return NullTime(
        intercept_ns=intercept,
        slope_ns=slope,
        deviation_ns=off,
        host_ns=statistics.median(host_ns),
        single_ns=statistics.median(single_ns),
        spread_ns=ordered[len(ordered) * 3 // 4] - ordered[len(ordered) // 4],
        gate_ns=sorted(gate_ns)[len(gate_ns) // 4],
        whole_ns=sorted(whole_ns)[len(whole_ns) // 4],
    )


def mean_ns(burst: Burst, null: NullTime) -> float:
    """What a call of a burst took on average, less what an empty kernel takes."""
    return (burst.held_ns - null.at(burst.calls)) / burst.calls


def counted(bursts: Sequence[Burst], margin: Margin) -> list[Burst]:
    """Those that bound the time: where large ones count alone, they have half of the most calls.

    A process whose calls were long had its bursts cut; if it only rested, others had not.
    """
    if not margin.large_alone:
        return list(bursts)
    large = [burst for burst in bursts if burst.large] or list(bursts)
    most = max((burst.calls for burst in large), default=0)
    return [burst for burst in large if 2 * burst.calls >= most]


def typical_slope(bursts: Sequence[Burst]) -> float:
    """Median slope over all pairs of bursts of different sizes; 0 where there are none."""
    slopes = [
        (b.held_ns - a.held_ns) / (b.calls - a.calls)
        for a, b in itertools.combinations(bursts, 2)
        if a.calls != b.calls
    ]
    return statistics.median(slopes) if slopes else 0.0


def outside_time(
    bursts: Sequence[Burst],
    null: NullTime,
    margin: Margin,
    single_ns: float | None = None,
    scatter_ns: float = 0.0,
) -> OutsideTime:
    """A lower bound on the time of a call, from calls whose outputs were all taken.

    The mean of a burst, less what an empty kernel takes, is more than its calls took: waiting, a
    busy host and padding only add to it. So the smallest one bounds the time from below, but for
    the error of the subtraction. A slope alone would not: padding small bursts makes it flat.

    single_ns: how long calls that were released alone held the runner, those that the claim rests
    on; scatter_ns: how much longer a typical one did. An honest kernel may be slower in a burst,
    where stores of the call before are still under way and not every call is as fast as the
    fastest, or faster, because its code is warm. So single calls count where they are precise, and
    elsewhere the more lenient.

    On a device a burst begins and ends late, by more than a small one takes: by half a millisecond
    on a busy host. A process can also answer before its work has ended, and of a small burst all is
    over until the coordinator has turned to look. So large ones count alone.
    """
    most = math.inf
    if single_ns is not None and margin.single_ns is None:  # not precise, but bursts may be slower
        most = max(single_ns - null.single_ns, 0.0)
    mean, calls = min((mean_ns(b, null), b.calls) for b in counted(bursts, margin))
    bound = min(max(mean, 0.0), most)
    error = max(margin.least_ns, DEVIATIONS * null.deviation_ns / calls) + margin.relative * bound
    single = None
    if single_ns is not None and margin.single_ns is not None:
        single = max(single_ns - null.single_ns, 0.0)
        error += min(scatter_ns, SCATTER * bound, SCATTER_NS)
        single_error = max(margin.single_ns, SPREADS * null.spread_ns)
        single_error += margin.single_relative * single
        if single_error <= PRECISE * single or single - single_error < bound - error:
            bound, error = single, single_error
    slope = typical_slope(bursts)
    intercept = statistics.median(b.held_ns - slope * b.calls for b in bursts)
    return OutsideTime(
        bound_ns=bound,
        error_ns=error,
        slope_ns=slope,
        intercept_ns=intercept,
        null_slope_ns=null.slope_ns,
        null_intercept_ns=null.intercept_ns,
        null_deviation_ns=null.deviation_ns,
        null_spread_ns=null.spread_ns,
        idle_ns=null.idle_ns,
        scatter_ns=scatter_ns,
        single_ns=single,
        bursts=tuple(bursts),
    )


def at_the_gate(
    outside: OutsideTime, gate_ns: float, null: NullTime, margin: Margin
) -> OutsideTime:
    """The same with the bound of calls that passed the gate, where that is the stricter one.

    gate_ns: least time that they took from when they were let begin until they said that they were
    over. The claim is of the same calls, and lies within it. What a kernel had done before it was
    let begin is missing in it, and in `outside` it is not.
    """
    if null.gate_ns <= 0:
        return outside
    bound, error = _gate_bound(gate_ns, null, margin)
    seen = replace(outside, gate_ns=bound, null_gate_ns=null.gate_ns)
    return _stricter(seen, bound, error)


def _gate_bound(gate_ns: float, null: NullTime, margin: Margin) -> tuple[float, float]:
    """What a call took at least by its time at the gate, and the error of that."""
    bound = max(gate_ns - null.gate_ns, 0.0)
    empty_ns = _unsure_ns(null.gate_ns, GATE_PYTHON_NS, GATE_SHARE)
    return bound, margin.gate_ns + margin.gate_relative * bound + empty_ns


def from_the_start(
    outside: OutsideTime, whole_ns: float, null: NullTime, margin: Margin
) -> OutsideTime:
    """The same with the bound of calls from when their process was let run.

    A torch runner copies its inputs and empties caches before it comes to the gate, and a kernel
    may be at work by then. whole_ns: least time of calls until they said that they were over.
    """
    if null.whole_ns <= 0:
        return outside
    bound, error = _whole_bound(whole_ns, null, margin)
    seen = replace(outside, whole_ns=bound, null_whole_ns=null.whole_ns)
    return _stricter(seen, bound, error)


def _whole_bound(whole_ns: float, null: NullTime, margin: Margin) -> tuple[float, float]:
    bound = max(whole_ns - null.whole_ns, 0.0)
    empty_ns = _unsure_ns(null.whole_ns, WHOLE_PYTHON_NS, WHOLE_SHARE)
    return bound, margin.gate_ns + margin.gate_relative * bound + empty_ns


def _unsure_ns(empty_ns: float, python_ns: float, share: float) -> float:
    """What a kernel's call may differ by from an empty one beside the kernel itself."""
    return share * min(empty_ns, python_ns) + COPIES_SHARE * max(empty_ns - python_ns, 0.0)


def least_of_call(gate_ns: float, whole_ns: float | None, null: NullTime, margin: Margin) -> float:
    """What a single call took at least, by what the coordinator saw of it; 0 if that says nothing.

    gate_ns, whole_ns: see `at_the_gate` and `from_the_start`; the latter may not be known.
    """
    bounds = [_gate_bound(gate_ns, null, margin)] if null.gate_ns > 0 else []
    if whole_ns is not None and null.whole_ns > 0:
        bounds.append(_whole_bound(whole_ns, null, margin))
    return max((bound - error for bound, error in bounds), default=0.0)


def _stricter(outside: OutsideTime, bound_ns: float, error_ns: float) -> OutsideTime:
    if bound_ns - error_ns <= outside.bound_ns - outside.error_ns:
        return outside
    return replace(outside, bound_ns=bound_ns, error_ns=error_ns)


def beats_clock(claimed_ns: float, host_ns: float, null: NullTime, outside: OutsideTime) -> bool:
    """Whether a claimed time is shorter than the coordinator's clock allows.

    host_ns: how long the host needed to queue a call on a device; a burst waits for that where the
    device does not, and short kernels are bound by it. It is the runner's word, and buys nothing
    from `HOST_COUNTS_NS` on: see `at_least`.
    """
    if outside.bound_ns >= HOST_COUNTS_NS:
        host_ns = max(host_ns - null.host_ns, 0.0)
    return claimed_ns + host_ns < outside.bound_ns - outside.error_ns - _TICK_NS


def is_blind(outside: OutsideTime, margin: Margin) -> bool:
    """Whether the clock says too little of a kernel that is long enough for it."""
    at_the_gate = outside.bound_ns in (outside.gate_ns, outside.whole_ns)
    relative = margin.gate_relative if at_the_gate else margin.relative
    error_ns = outside.error_ns - relative * outside.bound_ns
    return outside.bound_ns >= SEEN_NS and error_ns > BLIND * outside.bound_ns


def at_least(measurement: Measurement, outside: OutsideTime) -> Measurement:
    """The coordinator's time instead of a claimed one that only the host's slowness explains."""
    least = outside.bound_ns - outside.error_ns
    if outside.bound_ns < HOST_COUNTS_NS or measurement.time_ns >= least:
        return measurement
    time_ns = measurement.time_ns
    return replace(
        measurement,
        time_ns=outside.bound_ns,
        low_ns=outside.bound_ns * max(measurement.low_ns / time_ns, _WIDEST),
        high_ns=outside.bound_ns * min(measurement.high_ns / time_ns, 1 / _WIDEST),
    )
