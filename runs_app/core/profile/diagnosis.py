"""What a profile really tells of a kernel's limit, and how often such a class then helped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.profile import THROUGHPUTS
from runs_app.core.profile.bottleneck import CLASS_METRICS, Bottleneck

NEAR_PCT = 80.0
"""From this throughput on a kernel is near that limit. Source: judgement; ncu's rules say 80."""

FAR_PCT = 60.0
"""Below it a kernel is near no limit. Source: judgement; ncu's rules say 60."""

_COMPUTE, _DRAM, _MEMORY = THROUGHPUTS
_STALL, _CYCLES = "stall_", "_cycles_per_inst"


class Diagnosis(StrEnum):
    """What limits a kernel, as far as its throughputs tell."""

    COMPUTE = "compute"
    MEMORY_BANDWIDTH = "memory_bandwidth"
    NEITHER = "neither"
    UNCERTAIN = "uncertain"


MEANINGS: dict[str, str] = {
    Diagnosis.COMPUTE: "near the arithmetic limit",
    Diagnosis.MEMORY_BANDWIDTH: "near the memory bandwidth limit",
    Diagnosis.NEITHER: (
        "far from both limits: the cause may be latency, dependencies, instructions "
        "that the work formula doesn't count, or poor memory access"
    ),
    Diagnosis.UNCERTAIN: "uncertain: it is not close enough to either limit",
}
"""What a diagnosis says of a kernel."""


def diagnosis_of(metrics: Mapping[str, float]) -> str:
    """The diagnosis of a profile's throughputs, in percent; "" where one of them is missing."""
    if any(name not in metrics for name in THROUGHPUTS):
        return ""
    computed, moved = metrics[_COMPUTE], max(metrics[_DRAM], metrics[_MEMORY])
    highest = max(computed, moved)
    if highest < FAR_PCT:
        return Diagnosis.NEITHER
    if highest < NEAR_PCT:
        return Diagnosis.UNCERTAIN
    return Diagnosis.COMPUTE if computed >= moved else Diagnosis.MEMORY_BANDWIDTH


def diagnose(result: EvaluationResult) -> str:
    """The diagnosis of an evaluation's profile; "" without one."""
    return diagnosis_of(result.profile.metrics) if result.profile else ""


def throughput_line(metrics: Mapping[str, float]) -> str:
    """The three throughputs that a class is made of; empty where one of them is missing."""
    if any(name not in metrics for name in THROUGHPUTS):
        return ""
    shares = ", ".join(f"{name.split('_')[0]} {metrics[name]:.3g} %" for name in THROUGHPUTS)
    return f"Throughput, as a share of the device's peak: {shares}"


def stall_line(metrics: Mapping[str, float]) -> str:
    """What warps wait for most, where a profiler has counted it; else nothing."""
    stalls = {
        key.removeprefix(_STALL).removesuffix(_CYCLES).replace("_", " "): value
        for key, value in metrics.items()
        if key.startswith(_STALL) and key.endswith(_CYCLES) and value > 0
    }
    if not stalls:
        return ""
    worst = sorted(stalls.items(), key=lambda item: -item[1])[:3]
    listed = ", ".join(f"{name} {value:.2g}" for name, value in worst)
    return f"Main reasons for stalled warps (cycles per instruction): {listed}"


def class_line(name: str, metrics: Mapping[str, float]) -> str:
    """What a prompt says of a class; in place of one of CUDAMaster's what the throughputs say."""
    shown = diagnosis_of(metrics) if name in CLASS_METRICS else name
    return f"Class: {shown}, {MEANINGS[shown]}" if shown in MEANINGS else ""


_LATENCY = frozenset(
    ("openmp", "simd", "unrolling", "prefetch", "vector loads", "launch bounds", "warp shuffle")
)
_MEMORY_TECHNIQUES = frozenset(
    (
        *("vector loads", "shared memory", "async copy", "read-only cache", "prefetch"),
        *("streaming stores", "blocking", "constant memory"),
    )
)
_ADDRESSES: dict[str, frozenset[str]] = {
    Diagnosis.COMPUTE: frozenset(("tensor cores", "fast maths", "simd", "unrolling", "blocking")),
    Diagnosis.MEMORY_BANDWIDTH: _MEMORY_TECHNIQUES,
    Diagnosis.NEITHER: _LATENCY,
    Diagnosis.UNCERTAIN: _LATENCY,
    Bottleneck.MEMORY_LATENCY: _LATENCY,
}
"""Techniques that attack what a class says, by the names of `techniques.NAMES`."""


class Kernel(Protocol):
    """What of a candidate a score needs."""

    number: int
    parents: tuple[int, ...]
    techniques: tuple[str, ...]
    bottleneck: str
    latency_ns: float | None
    spread: float | None


@dataclass
class ClassScore:
    """Children of kernels of a class: those that attacked what it says, and the others.

    A child has helped if it is faster than its first parent beyond the noise of both.
    """

    name: str
    followed: int = 0
    followed_helped: int = 0
    others: int = 0
    others_helped: int = 0

    @property
    def followed_share(self) -> float | None:
        """Share of those that followed the class that were faster."""
        return self.followed_helped / self.followed if self.followed else None

    @property
    def others_share(self) -> float | None:
        """Share of the others that were faster."""
        return self.others_helped / self.others if self.others else None


def class_scores(kernels: Iterable[Kernel]) -> list[ClassScore]:
    """How often each class led to something faster, beside children that did something else."""
    known = {kernel.number: kernel for kernel in kernels}
    scores: dict[str, ClassScore] = {}
    for child in known.values():
        parent = known.get(child.parents[0]) if child.parents else None
        if parent is None or parent.bottleneck not in _ADDRESSES:
            continue
        if parent.latency_ns is None or child.latency_ns is None:
            continue
        score = scores.setdefault(parent.bottleneck, ClassScore(parent.bottleneck))
        new = set(child.techniques) - set(parent.techniques)
        helped = _is_faster(child, parent)
        if new & _ADDRESSES[parent.bottleneck]:
            score.followed += 1
            score.followed_helped += helped
        else:
            score.others += 1
            score.others_helped += helped
    return sorted(scores.values(), key=lambda score: score.name)


def _is_faster(child: Kernel, parent: Kernel) -> bool:
    new, old = child.latency_ns or 0.0, parent.latency_ns or 0.0
    return old - new > math.hypot(new * (child.spread or 0.0), old * (parent.spread or 0.0))
