"""What hardware said of a candidate, as prompts show it; hidden workloads are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_runner.data.evaluation import EvaluationResult, Mismatch


@dataclass(frozen=True, kw_only=True)
class WorkloadTime:
    """Times of one public workload in nanoseconds."""

    name: str
    parameters: Mapping[str, str]
    median_ns: float
    low_ns: float
    high_ns: float
    baseline_ns: float | None = None  # the fastest baseline
    floor_ns: float | None = None


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """Verdict, times, compiler report and profile of one evaluation of a candidate."""

    verdict: str
    reason: str
    latency_ns: float | None = None
    spread: float | None = None
    speedups: Mapping[str, float] = field(default_factory=dict)
    floor_fraction: float | None = None
    workloads: tuple[WorkloadTime, ...] = ()
    mismatch: Mismatch | None = None
    build_log: str = ""
    resources: tuple[str, ...] = ()  # one line for each kernel: registers, shared memory, spills
    output: str = ""
    profile_tool: str = ""
    profile: Mapping[str, float] = field(default_factory=dict)
    profile_notes: tuple[str, ...] = ()


def feedback_of(result: EvaluationResult) -> Feedback:
    """The feedback of a result. Of a profile's second result the times count as well."""
    raise NotImplementedError
