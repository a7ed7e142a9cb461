"""Turns measured facts into numbers and a verdict; pure."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpu_runner.data.evaluation import (
    Measurement,
    OutputError,
    ProcessRun,
    WorkloadResult,
)
from gpu_runner.data.integrity import Check, OutsideTime, Suspicion
from gpu_runner.data.task import Cost, Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.supervisor.device import Peak
from gpu_runner.supervisor.outside import (
    Margin,
    NullTime,
    at_least,
    at_the_gate,
    from_the_start,
    least_of_call,
    outside_time,
)
from gpu_runner.supervisor.report import duration
from gpu_runner.supervisor.statistics import Estimator, geometric_mean, measure

_SAVED = 4.0
"""Direct operations for one of a cleverer algorithm: Winograd's F(4x4, 3x3) needs a quarter."""
_SAVED_IN_PARTS = 4 / 3  # Strassen twice; nobody adds Winograd to arithmetic in parts
_PARTS = {"float32": 3, "float64": 10}
"""Products in 16 bits that give one of the dtype's precision, on tensor cores."""
_RESIDUE = 0.14
"""Share of the inputs that a flush may leave in a cache which evicts at random: e to the -2."""
_RESOLUTION_NS = 1000.0  # of a pair of events, whose mean cost is subtracted from a time
_IMPOSSIBLE_BYTES, _IMPOSSIBLE_RATE = 0.5, 1.25
"""Beyond the floor, a time below this part of the bytes, or above this rate, is no honest one."""

LUCKY, LUCKY_NS = 2.0, 5_000.0
"""How much slower nine of ten calls may be than the fastest, as a ratio and beyond cold memory."""


@dataclass
class Facts:
    """What is known of one workload: runs, largest errors by output, baselines by name.

    estimator: how they become a time. null, margin: what the outside clock must allow for.
    """

    estimator: Estimator
    runs: list[ProcessRun] = field(default_factory=list)
    errors: dict[str, OutputError] = field(default_factory=dict)
    baselines: Mapping[str, Measurement] = field(default_factory=dict)
    null: NullTime | None = None
    margin: Margin | None = None

    def counted(self) -> list[ProcessRun]:
        """The runs with the times that count: claimed ones, or what we saw of a call at least.

        A host may take the coordinator's processor away, so that it sees an end too late: such a
        call counts as a slow one, and another is the fastest. What is claimed below it gains
        nothing. Where it is so for most calls, though the coordinator had its processor, it is the
        process that lies, and its claims stand as they are, to be contradicted.
        """
        return [_counted(run, self.null, self.margin) for run in self.runs]


def _counted(run: ProcessRun, null: NullTime | None, margin: Margin | None) -> ProcessRun:
    if null is None or margin is None or not run.gate_ns:
        return run
    whole = run.whole_ns or (None,) * len(run.times_ns)
    late = run.late_ns or (0,) * len(run.times_ns)
    times, lies = [], 0
    for claimed_ns, gate_ns, whole_ns, late_ns in zip(
        run.times_ns, run.gate_ns, whole, late, strict=True
    ):
        in_time_ns = None if whole_ns is None else whole_ns - late_ns
        lies += least_of_call(gate_ns - late_ns, in_time_ns, null, margin) > claimed_ns
        times.append(max(claimed_ns, least_of_call(gate_ns, whole_ns, null, margin)))
    return run if 2 * lies >= len(times) else replace(run, times_ns=tuple(times))


def workload_result(
    task: Task, workload: Workload, direction: Direction, facts: Facts, peak: Peak | None
) -> WorkloadResult:
    """Time, interval, speedups and floor of one workload; the same facts give the same result."""
    rng = random.Random(0)  # noqa: S311 - resampling, no secret
    estimator, runs = facts.estimator, facts.counted()
    claimed = measure([run.times_ns for run in runs], estimator, rng) if runs else None
    outside = _outside(facts, runs)
    measurement = at_least(claimed, outside) if claimed and outside else claimed
    cost = task.cost(workload, direction)
    return WorkloadResult(
        name=workload.name,
        parameters=workload.parameters,
        hidden=workload.hidden,
        measurement=measurement,
        processes=tuple(facts.runs),
        errors=tuple(facts.errors.values()),
        baselines=facts.baselines,
        speedups=_speedups(measurement, facts.baselines),
        flops=cost.flops if cost else None,
        bytes=cost.bytes if cost else None,
        weight=cost.weight if cost and cost.weight > 0 else 1.0,
        floor_ns=floor_ns(cost, peak, task.dtype) if cost and peak else None,
        outside=outside,
    )


def _outside(facts: Facts, runs: Sequence[ProcessRun]) -> OutsideTime | None:
    """What the coordinator's clock says, from the same processes and calls as the claim.

    Another choice could contradict it.
    """
    estimator, null, margin = facts.estimator, facts.null, facts.margin
    bursts = [burst for run in runs for burst in run.bursts]
    if not bursts or null is None or margin is None:
        return None

    def least(of_runs: Sequence[Sequence[float]]) -> float:
        return estimator.of_all([estimator.held(calls) for calls in of_runs])

    single_ns, scatter_ns = None, 0.0
    held = [run.held_ns for run in runs if run.held_ns]
    if held and estimator.fastest:
        single_ns = least(held)
        typical_ns = estimator.of_all([statistics.median(calls) for calls in held])
        scatter_ns = max(0.0, typical_ns - single_ns)
    outside = outside_time(bursts, null, margin, single_ns, scatter_ns)
    # The claim is of all processes, so one that this clock says nothing of leaves it silent.
    if all(gated := [run.gate_ns for run in runs]):
        outside = at_the_gate(outside, least(gated), null, margin)
    if all(whole := [_whole(run) for run in runs]):
        outside = from_the_start(outside, least(whole), null, margin)
    return outside


def _whole(run: ProcessRun) -> list[float]:
    """Times since the process was let run, of calls that did not wait for a processor.

    None if the fastest call has none: those of the others do not bound its time.
    """
    if not run.whole_ns or run.whole_ns[run.times_ns.index(min(run.times_ns))] is None:
        return []
    return [whole_ns for whole_ns in run.whole_ns if whole_ns is not None]


def _speedups(
    measurement: Measurement | None, baselines: Mapping[str, Measurement]
) -> dict[str, float]:
    if measurement is None or not baselines:
        return {}
    found = {name: b.time_ns / measurement.time_ns for name, b in baselines.items()}
    return {**found, "best": min(found.values())}


def floor_ns(cost: Cost, peak: Peak, dtype: str) -> float | None:
    """The larger of compulsory bytes over bandwidth and FLOPs over peak rate, in ns.

    None where it does arithmetic of which no rate is known.
    """
    rate = peak.flops.get(dtype)
    if cost.flops > 0 and rate is None:
        return None
    computing_s = cost.flops / rate if rate else 0.0
    seconds = max(cost.bytes / peak.bytes_per_s, computing_s)
    return seconds * 1e9 if seconds > 0 else None


def beats_physics(
    workloads: Sequence[WorkloadResult],
    peak: Peak,
    dtype: str,
    output_bytes: Mapping[str, float] | None = None,
) -> str:
    """Which workload's time is far below what the device can do; empty if none is.

    That is a violation: half the bytes, or a quarter more operations than `possible_rate`, leave
    no room for honesty. `peak` must not rest on a measurement. output_bytes: of a call, by name.
    """
    rate = possible_rate(peak, dtype)
    for workload in workloads:
        if workload.measurement is None or workload.bytes is None:
            continue
        moved = min(_IMPOSSIBLE_BYTES * workload.bytes, _from_memory(workload, peak, output_bytes))
        computed_s = (workload.flops or 0.0) / (_IMPOSSIBLE_RATE * rate) if rate else 0.0
        least_ns = max(moved / peak.bytes_per_s, computed_s) * 1e9
        if workload.measurement.time_ns < least_ns:
            if workload.hidden:
                return "claims a time on a hidden workload that the device cannot reach"
            return (
                f"claims {workload.measurement.time_ns:.0f} ns on {workload.name}, but the device"
                f" needs at least {least_ns:.0f} ns for its bytes and operations"
            )
    return ""


def floor_suspicions(
    workloads: Sequence[WorkloadResult],
    peak: Peak,
    dtype: str,
    output_bytes: Mapping[str, float] | None = None,
) -> list[Suspicion]:
    """A suspicion for each workload whose whole interval lies below the device's floor.

    `peak` is `peaks.ceiling`'s. output_bytes: of a call, by workload's name; half the bytes where
    they are not known. Hidden workloads are not told apart. No work formula, no suspicion.
    """
    reasons: list[str] = []
    for workload in workloads:
        measured = workload.measurement
        if measured is None or workload.bytes is None:
            continue
        moving_ns, computing_ns = _least_times_ns(workload, peak, dtype, output_bytes)
        least_ns = max(moving_ns, computing_ns)
        if measured.high_ns + _RESOLUTION_NS >= least_ns:
            continue
        if workload.hidden:
            reasons.append("a hidden workload is faster than the physical limit of the device")
        else:
            what = "bytes" if moving_ns >= computing_ns else "operations"
            reasons.append(
                f"{workload.name} took {duration(measured.time_ns)}, less than the"
                f" {duration(least_ns)} that its {what} take at the physical limit of the device"
            )
    return [Suspicion(check=Check.FLOOR, reason=reason) for reason in dict.fromkeys(reasons)]


def _least_times_ns(
    workload: WorkloadResult,
    peak: Peak,
    dtype: str,
    output_bytes: Mapping[str, float] | None,
) -> tuple[float, float]:
    """What the bytes that must pass through memory take, and the operations."""
    rate = possible_rate(peak, dtype)
    moving_s = _from_memory(workload, peak, output_bytes) / peak.bytes_per_s
    return 1e9 * moving_s, 1e9 * (workload.flops or 0.0) / rate if rate else 0.0


def _from_memory(
    workload: WorkloadResult, peak: Peak, output_bytes: Mapping[str, float] | None
) -> float:
    """Bytes that no cache saves: outputs may stay in one, and of inputs a flush's residue."""
    total = workload.bytes or 0.0
    outputs = min(total, (output_bytes or {}).get(workload.name, total / 2))
    residue = _RESIDUE * min(total - outputs, peak.cache_bytes)
    return total - min(outputs, peak.cache_bytes) - residue


def possible_rate(peak: Peak, dtype: str) -> float | None:
    """Operations of a work formula per second that an honest kernel cannot exceed.

    A cleverer algorithm needs fewer than the formula counts. float32 and float64 may be computed
    in parts on tensor cores, without loss, faster than the units for them do it.
    """
    plain = peak.flops.get(dtype)
    if plain is None:
        return None
    parts = _PARTS.get(dtype)
    sixteen = max(peak.flops.get("float16", 0.0), peak.flops.get("bfloat16", 0.0))
    return max(_SAVED * plain, _SAVED_IN_PARTS * sixteen / parts if parts else 0.0)


def fraction(workloads: Sequence[WorkloadResult], peak: Peak, dtype: str) -> float | None:
    """Time at a peak over the time measured: geometric mean over the public workloads."""
    shares = []
    for workload in workloads:
        if workload.hidden or workload.measurement is None or workload.bytes is None:
            continue
        cost = Cost(flops=workload.flops or 0.0, bytes=workload.bytes, weight=workload.weight)
        least_ns = floor_ns(cost, peak, dtype)
        if least_ns is not None:
            shares.append(least_ns / workload.measurement.time_ns)
    return geometric_mean(shares)


def summary(workloads: Sequence[WorkloadResult]) -> dict[str, Any]:
    """The result's headline fields over measured workloads (see `EvaluationResult`)."""
    public = [w for w in workloads if not w.hidden]
    hidden = [w for w in workloads if w.hidden]
    floors = [w.floor_ns / w.measurement.time_ns for w in public if w.floor_ns and w.measurement]
    return {
        "latency_ns": geometric_mean(w.measurement.time_ns for w in public if w.measurement),
        "speedups": _mean_speedups(public),
        "hidden_speedups": _mean_speedups(hidden),
        "floor_fraction": geometric_mean(floors),
        "score": _score(public),
    }


def _mean_speedups(workloads: Sequence[WorkloadResult]) -> dict[str, float]:
    """Geometric means of the baselines that every workload has."""
    if not workloads:
        return {}
    names = set.intersection(*(set(w.speedups) for w in workloads))
    means = {name: geometric_mean(w.speedups[name] for w in workloads) for name in sorted(names)}
    return {name: mean for name, mean in means.items() if mean is not None}


def _score(workloads: Sequence[WorkloadResult]) -> float | None:
    """MSKernelBench's P: speedups against the best baseline, weighted by work."""
    if not workloads or any("best" not in w.speedups for w in workloads):
        return None
    total = sum(w.weight for w in workloads)
    return sum(w.weight * w.speedups["best"] for w in workloads) / total


def luck_suspicions(workloads: Sequence[WorkloadResult]) -> list[Suspicion]:
    """Workloads whose fastest calls, which count on a CPU, say little of the others.

    Neighbours on the same core make calls slower by 30 to 60 %; a kernel that guesses and is
    seldom right at once, or that rests between its good calls, differs by more in every process.
    The coordinator's times are looked at where there are some: of those that are claimed, only the
    fastest must be true.
    """
    found = []
    for workload in workloads:
        null_ns = (workload.outside.null_gate_ns if workload.outside else None) or 0.0
        runs = [sorted(_seen(run, null_ns)) for run in workload.processes]
        lucky = [t for t in runs if _tenth(t) > max(LUCKY * t[0], t[0] + LUCKY_NS)]
        if runs and len(lucky) > len(runs) / 2:
            name = "a hidden workload" if workload.hidden else workload.name
            reason = f"nine of ten calls of {name} take more than {LUCKY:g} times the fastest"
            found.append(Suspicion(check=Check.LUCK, reason=reason))
    return found


def _tenth(ordered: Sequence[float]) -> float:
    """The lower decile, of few times the second."""
    return ordered[min(max(len(ordered) // 10, 1), len(ordered) - 1)]


def _seen(run: ProcessRun, null_gate_ns: float) -> Sequence[float]:
    """Times of the single calls: the claimed ones, or the coordinator's where these are longer.

    Less how long it was kept from its own processor: that says nothing of the kernel.
    """
    if not run.gate_ns:
        return run.times_ns
    late = run.late_ns or (0,) * len(run.times_ns)
    calls = zip(run.times_ns, run.gate_ns, late, strict=True)
    return [max(time_ns, gate_ns - late_ns - null_gate_ns) for time_ns, gate_ns, late_ns in calls]


def noisiest(workloads: Sequence[WorkloadResult], resolution_ns: float) -> tuple[str, float]:
    """Name and relative half-width of the public workload with the widest interval.

    An interval narrower than the clock's resolution counts as exact.
    """
    public = [w for w in workloads if w.measurement and not w.hidden]
    widths = [(_width(w.measurement, resolution_ns), w.name) for w in public if w.measurement]
    width, name = max(widths)
    return name, width


def _width(measurement: Measurement, resolution_ns: float) -> float:
    half = (measurement.high_ns - measurement.low_ns) / 2
    return measurement.relative_half_width if half > resolution_ns else 0.0
