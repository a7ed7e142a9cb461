"""What the compiler and a profiler say of a kernel: advice for its author, never judged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_runner.data.codec import DataError

THROUGHPUTS = ("compute_throughput_pct", "dram_throughput_pct", "memory_throughput_pct")
"""Metrics that every profile has, in percent of the device's peak, 0 to 100."""

TOOLS = ("ncu", "portable")


@dataclass(frozen=True, kw_only=True)
class KernelResources:
    """What one CUDA kernel takes by the assembler's report; `name` is demangled."""

    name: str
    registers: int  # per thread
    shared_bytes: int = 0  # static, per block
    constant_bytes: int = 0
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class KernelMetrics:
    """One kernel of a call: the time of all its launches in that call, and what limited it."""

    name: str
    duration_ns: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A profile of one listed workload.

    tool: "ncu" (hardware counters) or "portable" (times and the work formula against the device's
    peaks); reason: why it is not "ncu", empty if it is. metrics: of the whole call; names end in
    their unit and hold `THROUGHPUTS` whatever the tool. causes: why it is slow, as an experiment or
    a counter has shown, each with its figure and what to do. notes: other sentences for a person.
    """

    tool: str
    reason: str
    workload: str
    metrics: Mapping[str, float]
    kernels: tuple[KernelMetrics, ...] = ()
    notes: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an unknown tool, and a throughput that is missing or no percentage."""
        if self.tool not in TOOLS:
            raise DataError("tool", f"{self.tool!r} is not one of {', '.join(TOOLS)}")
        for name in THROUGHPUTS:
            if not 0 <= self.metrics.get(name, math.nan) <= 100:
                raise DataError(f"metrics.{name}", "must be a percentage from 0 to 100")
