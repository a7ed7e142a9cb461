"""CUDAMaster's deterministic filter: what limits a kernel, and the metrics that speak of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.profile import THROUGHPUTS

DEFAULT_THRESHOLD_PCT = 30.0
"""CUDAMaster's: Otsu's threshold over its baseline kernels, on its device."""

MIN_PROFILES = 8
"""Fewer profiles than this say too little of a device to move the threshold."""

_COMPUTE, _DRAM, _MEMORY = THROUGHPUTS


class Bottleneck(StrEnum):
    """CUDAMaster's three classes."""

    COMPUTE = "compute"
    MEMORY_LATENCY = "memory_latency"
    MEMORY_BANDWIDTH = "memory_bandwidth"


CLASS_METRICS: dict[str, tuple[str, ...]] = {
    Bottleneck.COMPUTE: (
        "compute_throughput_pct",  # SM Throughput
        "issue_slots_busy_pct",
        "executed_ipc_active_inst_per_cycle",
        "sm_busy_pct",
    ),
    Bottleneck.MEMORY_LATENCY: (
        "l2_hit_rate_pct",
        "l1tex_hit_rate_pct",
        "executed_ipc_elapsed_inst_per_cycle",
        "mem_busy_pct",
    ),
    Bottleneck.MEMORY_BANDWIDTH: (
        "dram_throughput_pct",
        "memory_throughput_pct",
        "max_bandwidth_pct",
        "mem_pipes_busy_pct",
    ),
}
"""The metrics that CUDAMaster shows of each class, under the names of `Profile`."""

STAND_INS: dict[str, tuple[str, ...]] = {
    Bottleneck.COMPUTE: ("compute_throughput_pct", "achieved_flop_per_s", "peak_flop_per_s"),
    Bottleneck.MEMORY_LATENCY: (*THROUGHPUTS, "arithmetic_intensity_flop_per_byte"),
    Bottleneck.MEMORY_BANDWIDTH: (
        "dram_throughput_pct",
        "achieved_bytes_per_s",
        "peak_bytes_per_s",
    ),
}
"""What is shown in their place of a profile without hardware counters."""


def class_of(metrics: Mapping[str, float], threshold_pct: float) -> str:
    """The class of a profile's throughputs, in percent; "" where one of them is missing.

    Compute above the threshold is `compute`; else DRAM or memory above it `memory_bandwidth`;
    else `memory_latency` (CUDAMaster, its filter's rules).
    """
    if any(name not in metrics for name in THROUGHPUTS):
        return ""
    if metrics[_COMPUTE] > threshold_pct:
        return Bottleneck.COMPUTE
    if max(metrics[_DRAM], metrics[_MEMORY]) > threshold_pct:
        return Bottleneck.MEMORY_BANDWIDTH
    return Bottleneck.MEMORY_LATENCY


def classify(result: EvaluationResult, threshold_pct: float) -> str:
    """The class of an evaluation's profile; "" without one."""
    return class_of(result.profile.metrics, threshold_pct) if result.profile else ""


def filtered(metrics: Mapping[str, float], bottleneck: str) -> dict[str, float]:
    """Of a profile's metrics those of its class; all of them without a class.

    Where more of the class's own are missing than are there, its stand-ins take their place.
    """
    if bottleneck not in CLASS_METRICS:
        return dict(metrics)
    own = [name for name in CLASS_METRICS[bottleneck] if name in metrics]
    enough = 2 * len(own) > len(CLASS_METRICS[bottleneck])
    names = own if enough else STAND_INS[bottleneck]
    return {name: metrics[name] for name in names if name in metrics}


def otsu(values: Sequence[float]) -> float:
    """Otsu's threshold: the cut between values that separates two classes best.

    It maximises the variance between the classes (Otsu 1979), over the values themselves instead
    of a histogram's bins; the cut lies midway between two neighbours. Raises `ValueError` where
    fewer than two different values leave nothing to cut.
    """
    ordered = sorted(values)
    if not ordered or ordered[0] == ordered[-1]:
        raise ValueError("needs two different values")
    total, count = sum(ordered), len(ordered)
    best, cut, below = -1.0, ordered[0], 0.0
    for size in range(1, count):
        below += ordered[size - 1]
        if ordered[size - 1] == ordered[size]:
            continue
        gap = below / size - (total - below) / (count - size)
        variance = size * (count - size) * gap * gap
        if variance > best:
            best, cut = variance, (ordered[size - 1] + ordered[size]) / 2
    return cut


def calibrate(throughputs: Sequence[float]) -> float:
    """The threshold for a device: Otsu's, over the throughputs of its naive kernels' profiles.

    throughputs: in percent, the three of `THROUGHPUTS` of each profile. `DEFAULT_THRESHOLD_PCT`
    where they are of fewer than `MIN_PROFILES` profiles, or leave nothing to separate.
    """
    if len(throughputs) < MIN_PROFILES * len(THROUGHPUTS) or len(set(throughputs)) < 2:
        return DEFAULT_THRESHOLD_PCT
    return otsu(throughputs)
