"""The physical floor of a time: what a device needs at least for a workload's bytes and operations.

Pure arithmetic over work formulas and peaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpu_runner.data.evaluation import WorkloadResult
from gpu_runner.data.floor import (
    FLOOR_RESOLUTION_NS,
    IMPOSSIBLE_BYTES,
    IMPOSSIBLE_RATE,
    PARTS,
    RESIDUE,
    SAVED,
    SAVED_IN_PARTS,
)
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.scores import geometric_mean
from gpu_runner.data.task import Cost
from gpu_runner.supervisor.device.device import Peak


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
        moved = min(IMPOSSIBLE_BYTES * workload.bytes, _from_memory(workload, peak, output_bytes))
        computed_s = (workload.flops or 0.0) / (IMPOSSIBLE_RATE * rate) if rate else 0.0
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
        if measured.high_ns + FLOOR_RESOLUTION_NS >= least_ns:
            continue
        if workload.hidden:
            reasons.append("a hidden workload is faster than the physical limit of the device")
        else:
            what = "bytes" if moving_ns >= computing_ns else "operations"
            reasons.append(
                f"{workload.name} took {duration_text(measured.time_ns)}, less than the"
                f" {duration_text(least_ns)} that its {what} take at the physical limit of the "
                "device"
            )
    return [Suspicion(check=Check.FLOOR, reason=reason) for reason in dict.fromkeys(reasons)]


def _least_times_ns(
    workload: WorkloadResult, peak: Peak, dtype: str, output_bytes: Mapping[str, float] | None
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
    residue = RESIDUE * min(total - outputs, peak.cache_bytes)
    return total - min(outputs, peak.cache_bytes) - residue


def possible_rate(peak: Peak, dtype: str) -> float | None:
    """Operations of a work formula per second that an honest kernel cannot exceed.

    A cleverer algorithm needs fewer than the formula counts. float32 and float64 may be computed
    in parts on tensor cores, without loss, faster than the units for them do it.
    """
    plain = peak.flops.get(dtype)
    if plain is None:
        return None
    parts = PARTS.get(dtype)
    sixteen = max(peak.flops.get("float16", 0.0), peak.flops.get("bfloat16", 0.0))
    return max(SAVED * plain, SAVED_IN_PARTS * sixteen / parts if parts else 0.0)


def fraction(workloads: Sequence[WorkloadResult], peak: Peak, dtype: str) -> float | None:
    """Time at a peak over the time measured: geometric mean over the listed workloads."""
    shares = []
    for workload in workloads:
        if workload.hidden or workload.measurement is None or workload.bytes is None:
            continue
        cost = Cost(flops=workload.flops or 0.0, bytes=workload.bytes, weight=workload.weight)
        least_ns = floor_ns(cost, peak, dtype)
        if least_ns is not None:
            shares.append(least_ns / workload.measurement.time_ns)
    return geometric_mean(shares)
