"""The outside clock: what the supervisor itself saw of a kernel's time; pure."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu_runner.data.evaluation import Measurement, WorkloadResult
from gpu_runner.data.integrity import Burst, OutsideTime
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.protocol import (
    BLIND_FROM_NS,
    BLIND_SHARE,
    BURST_DEVIATIONS,
    CALL_SPREADS,
    GATE_SHARE,
    HOST_COUNTS_NS,
    VAGUE_FROM_NS,
    VAGUE_SHARE,
    WIDEST_INTERVAL,
    Margin,
)
from gpu_runner.data.verdict import DeviceKind

UNSEEN = "the host is too busy for the supervisor's own clock to check the claimed times"

_TICK_NS = 1.0  # clocks count nanoseconds, and means of what they say are rounded


@dataclass(frozen=True, kw_only=True)
class EmptyKernelTime:
    """How long calls of a kernel that does nothing hold the runner, in ns.

    On a GPU, the line `intercept_ns + slope_ns * calls` of its bursts, the median deviation from
    it, and host_ns: how long the host takes to queue a single call. Of single calls, single_ns:
    how long one holds the runner (the median; on a CPU the lower quartile); spread_ns: from the
    lowest tenth of that to the median; gate_ns: the longest time in which the fastest tenth
    pass the gate; gate_spread_ns: from there to the median; idle_ns: what a call costs a thread
    that only waits.
    """

    intercept_ns: float
    slope_ns: float
    deviation_ns: float
    host_ns: float = 0.0
    single_ns: float = 0.0
    spread_ns: float = 0.0
    gate_ns: float = 0.0
    idle_ns: float = 0.0
    gate_spread_ns: float = 0.0

    def at(self, calls: int) -> float:
        """The time of a burst of so many calls."""
        return self.intercept_ns + self.slope_ns * calls


@dataclass(frozen=True)
class Seen:
    """What the supervisor saw of one workload's calls, in ns.

    held_ns: of single calls, by the evaluation's estimator; gate_ns: the same at the gate, or None.
    host_ns: what a runner says of how long its host needed to queue one.
    """

    held_ns: float | None = None
    gate_ns: float | None = None
    bursts: Sequence[Burst] = ()
    host_ns: float = 0.0


def empty_kernel_time(
    bursts: Sequence[Burst],
    host_ns: Sequence[float] = (0.0,),
    single_ns: Sequence[float] = (0.0,),
    gate_ns: Sequence[float] = (0.0,),
) -> EmptyKernelTime:
    """The line of the typical slope through the lower quartile; no line without bursts.

    The slope is the median of those of all pairs of bursts (Theil and Sen), so that single waits
    that a busy host drew out do not tilt it.
    """
    slope = max(0.0, typical_slope(bursts))
    rest = sorted(b.held_ns - slope * b.calls for b in bursts) or [0.0]
    intercept = rest[len(rest) // 4]
    ordered, gated = sorted(single_ns), sorted(gate_ns)
    return EmptyKernelTime(
        intercept_ns=intercept,
        slope_ns=slope,
        deviation_ns=statistics.median(abs(value - intercept) for value in rest),
        host_ns=statistics.median(host_ns),
        single_ns=ordered[len(ordered) // (2 if bursts else 4)],
        spread_ns=ordered[len(ordered) // 2] - ordered[len(ordered) // 10],
        gate_ns=gated[len(gated) // 10],
        gate_spread_ns=gated[len(gated) // 2] - gated[len(gated) // 10],
    )


def mean_ns(burst: Burst, empty: EmptyKernelTime) -> float:
    """What a call of a burst took on average, less what an empty kernel takes."""
    return (burst.held_ns - empty.at(burst.calls)) / burst.calls


def counted(bursts: Sequence[Burst]) -> list[Burst]:
    """Those that bound the time: the large ones, with half of the most calls.

    A process whose calls were long had its bursts cut; if it only rested, others had not.
    """
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
    kind: DeviceKind, seen: Seen, empty: EmptyKernelTime, margin: Margin
) -> OutsideTime | None:
    """The strictest lower bound on a call's time by what was seen; None where that is nothing."""
    if kind is DeviceKind.CUDA:
        return _of_bursts(seen, empty, margin) if seen.bursts else None
    return None if seen.held_ns is None else _of_calls(seen, empty, margin)


def _of_bursts(seen: Seen, empty: EmptyKernelTime, margin: Margin) -> OutsideTime:
    """The smallest mean of a large burst, less what an empty kernel takes.

    Waiting, a busy host and padding only add to it, so it bounds the time from below, but for the
    error of the subtraction.

    A burst begins and ends late, by more than a small one takes: by half a millisecond on a busy
    host. A process can also answer before its work has ended, and of a small burst all is over
    until the supervisor has turned to look. So large ones count alone.

    An honest kernel may take longer in a burst: it waits for its host, which a single call's head
    start hides, and for the stores of the call before. So much less is enough; or what a single
    call held the device, where that is less than a burst's and more than what is left of it.
    """
    mean, calls = min((mean_ns(b, empty), b.calls) for b in counted(seen.bursts))
    mean = max(mean, 0.0)
    host_ns = min(max(seen.host_ns - empty.host_ns, 0.0), margin.head_start_ns)
    least = max(mean - host_ns - margin.drain_ns, 0.0)
    single = math.inf
    if seen.held_ns is not None:  # empty calls scatter: the short ones say what one costs at least
        single = seen.held_ns - (empty.single_ns - empty.spread_ns)
    bound = min(mean, max(single, least))
    error = max(margin.least_ns, BURST_DEVIATIONS * empty.deviation_ns / calls)
    return OutsideTime(
        bound_ns=bound,
        error_ns=error + margin.relative * bound,
        null_slope_ns=empty.slope_ns,
        null_intercept_ns=empty.intercept_ns,
        null_deviation_ns=empty.deviation_ns,
        bursts=tuple(seen.bursts),
    )


def _of_calls(seen: Seen, empty: EmptyKernelTime, margin: Margin) -> OutsideTime:
    """Processor time, which sees what is done before the gate, or time at the gate, if stricter."""
    assert seen.held_ns is not None
    cpu = max(seen.held_ns - empty.single_ns, 0.0)
    error = max(margin.least_ns, CALL_SPREADS * empty.spread_ns) + margin.relative * cpu
    found = OutsideTime(
        bound_ns=cpu,
        error_ns=error,
        cpu_ns=cpu,
        null_spread_ns=empty.spread_ns,
        idle_ns=empty.idle_ns,
    )
    if seen.gate_ns is None or empty.gate_ns <= 0:
        return found
    gate, gate_error = _gate_bound(seen.gate_ns, empty, margin)
    found = replace(found, gate_ns=gate, null_gate_ns=empty.gate_ns)
    if gate - gate_error <= cpu - error:
        return found
    return replace(found, bound_ns=gate, error_ns=gate_error)


def _gate_bound(gate_ns: float, empty: EmptyKernelTime, margin: Margin) -> tuple[float, float]:
    """What a call took at least by its time at the gate, and the error of that."""
    bound = max(gate_ns - empty.gate_ns, 0.0)
    of_empty = max(GATE_SHARE * empty.gate_ns, empty.gate_spread_ns)
    return bound, margin.gate_ns + margin.gate_relative * bound + of_empty


def least_of_call(gate_ns: float, empty: EmptyKernelTime, margin: Margin) -> float:
    """What a single call took at least, by its time at the gate; 0 if that says nothing."""
    if empty.gate_ns <= 0:
        return 0.0
    bound, error = _gate_bound(gate_ns, empty, margin)
    return bound - error


def host_share_ns(host_ns: float, empty: EmptyKernelTime, outside: OutsideTime) -> float:
    """What of a short kernel's bound its host's slowness explains.

    host_ns: how long the host needed to queue a call on a device; a burst waits for that where the
    device does not, and short kernels are bound by it. It is the runner's word, and buys nothing
    from `HOST_COUNTS_NS` on.
    """
    return max(host_ns - empty.host_ns, 0.0) if outside.bound_ns < HOST_COUNTS_NS else 0.0


def is_contradicted(claimed_ns: float, outside: OutsideTime, host_ns: float = 0.0) -> bool:
    """Whether a claimed time is shorter than the supervisor's clock allows.

    host_ns: see `host_share_ns`.
    """
    return claimed_ns + host_ns < outside.bound_ns - outside.error_ns - _TICK_NS


def is_blind(outside: OutsideTime, margin: Margin) -> bool:
    """Whether the clock says too little of a kernel that is long enough for it."""
    at_the_gate = outside.bound_ns == outside.gate_ns
    relative = margin.gate_relative if at_the_gate else margin.relative
    error_ns = outside.error_ns - relative * outside.bound_ns
    return outside.bound_ns >= BLIND_FROM_NS and error_ns > BLIND_SHARE * outside.bound_ns


def is_vague(result: WorkloadResult) -> bool:
    """Whether the clock may be off by so much that it confirms no time of this workload."""
    if result.measurement is None:
        return False
    error_ns = math.inf if result.outside is None else result.outside.error_ns
    return error_ns > max(VAGUE_SHARE * result.measurement.time_ns, VAGUE_FROM_NS)


def unconfirmed(results: Sequence[WorkloadResult]) -> str:
    """Which times of listed workloads the clock is too imprecise to confirm; empty if none."""
    vague = [
        f"{duration_text(result.measurement.time_ns)} on {result.name} (off by up to"
        f" {_error(result)})"
        for result in results
        if result.measurement and not result.hidden and is_vague(result)
    ]
    start = "the supervisor's clock was too imprecise to confirm"
    return f"{start} {', '.join(vague)}" if vague else ""


def _error(result: WorkloadResult) -> str:
    return duration_text(result.outside.error_ns) if result.outside else "anything"


def at_least(measurement: Measurement, outside: OutsideTime, host_ns: float = 0.0) -> Measurement:
    """The same, or the supervisor's time in place of one that its clock contradicts.

    host_ns: see `host_share_ns`.
    """
    time_ns, seen_ns = measurement.time_ns, outside.bound_ns - host_ns
    if not is_contradicted(time_ns, outside, host_ns) or seen_ns <= time_ns:
        return measurement
    return replace(
        measurement,
        time_ns=seen_ns,
        low_ns=seen_ns * max(measurement.low_ns / time_ns, WIDEST_INTERVAL),
        high_ns=seen_ns * min(measurement.high_ns / time_ns, 1 / WIDEST_INTERVAL),
    )
