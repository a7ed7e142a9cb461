"""What a time says by itself: achieved rates against the device's peaks; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpu_runner.data.numbers import duration_text
from gpu_runner.supervisor.device.device import Peak

_FLAT, _PROPORTIONAL = 0.25, 0.75


@dataclass(frozen=True)
class Timed:
    """One measured workload: its time, and what it has to move and to compute."""

    name: str
    latency_ns: float
    bytes: float  # that a call moves
    flops: float  # operations of a call


def largest(timed: Sequence[Timed]) -> Timed:
    """The workload with the most operations, of several the one with the most bytes."""
    return max(timed, key=lambda one: (one.flops, one.bytes))


def metrics(one: Timed, peak: Peak, dtype: str) -> dict[str, float]:
    """Achieved rates, peaks and intensities; percentages are capped at 100.

    No counter is read: memory throughput counts the compulsory bytes only, so it stands for DRAM.
    """
    seconds = one.latency_ns / 1e9
    moved, computed, rate = one.bytes / seconds, one.flops / seconds, peak_rate(peak, dtype)
    memory = min(100.0, 100 * moved / peak.bytes_per_s)
    return {
        "compute_throughput_pct": min(100.0, 100 * computed / rate),
        "dram_throughput_pct": memory,
        "memory_throughput_pct": memory,
        "latency_ns": one.latency_ns,
        "achieved_bytes_per_s": moved,
        "achieved_flop_per_s": computed,
        "peak_bytes_per_s": peak.bytes_per_s,
        "peak_flop_per_s": rate,
        "arithmetic_intensity_flop_per_byte": one.flops / one.bytes if one.bytes else 0.0,
        "ridge_intensity_flop_per_byte": rate / peak.bytes_per_s,
    }


def peak_rate(peak: Peak, dtype: str) -> float:
    """FLOP/s in a dtype; float32's where the dtype's own is not known."""
    return peak.flops.get(dtype, peak.flops["float32"])


def scaling(timed: Sequence[Timed]) -> float | None:
    """How the time grows with the bytes from the smallest workload to the largest.

    The exponent: 1 is proportional, 0 a fixed cost. None where all are about the same size.
    """
    low = min(timed, key=lambda one: one.bytes)
    high = max(timed, key=lambda one: one.bytes)
    if low.bytes <= 0 or high.bytes < 2 * low.bytes:
        return None
    return math.log(high.latency_ns / low.latency_ns) / math.log(high.bytes / low.bytes)


def notes(timed: Sequence[Timed], peak: Peak, dtype: str) -> list[str]:
    """A sentence for each workload, and one on how times scale."""
    lines = []
    for one in timed:
        found = metrics(one, peak, dtype)
        lines.append(
            f"{one.name}: {duration_text(one.latency_ns)}, {found['dram_throughput_pct']:.2g} % of"
            f" the peak bandwidth, {found['compute_throughput_pct']:.2g} % of the peak arithmetic"
        )
    exponent = scaling(timed)
    if exponent is not None and exponent < _FLAT:
        lines.append("times hardly grow with the size: a fixed cost dominates")
    elif exponent is not None and exponent > _PROPORTIONAL:
        lines.append("times grow about as fast as the size, or faster")
    return lines
