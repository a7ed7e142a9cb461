"""What hardware said of a candidate, as prompts show it; hidden workloads are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_runner.data.evaluation import EvaluationResult, Mismatch, WorkloadResult
from gpu_runner.data.profile import KernelMetrics, KernelResources
from gpu_runner.data.protocol import PLANS
from gpu_runner.data.verdict import Mode


@dataclass(frozen=True, kw_only=True)
class WorkloadTime:
    """Times of one listed workload in nanoseconds."""

    name: str
    parameters: Mapping[str, str]
    time_ns: float
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
    spread: float | None = None  # half a 95 % interval over the time; the widest of all
    speedups: Mapping[str, float] = field(default_factory=dict)  # over each baseline, and `best`
    workloads: tuple[WorkloadTime, ...] = ()
    mismatch: Mismatch | None = None
    build_log: str = ""
    resources: tuple[str, ...] = ()  # one line for each kernel: registers, shared memory, spills
    output: str = ""  # what the kernel printed
    profile_tool: str = ""
    profile_workload: str = ""
    profile: Mapping[str, float] = field(default_factory=dict)  # of `profile_workload`, by name
    profile_kernels: tuple[str, ...] = ()  # one line for each kernel of a call
    profile_notes: tuple[str, ...] = ()


def feedback_of(result: EvaluationResult) -> Feedback:
    """The feedback of a result.

    Nothing of a hidden workload is in it: no name, shape, time, mismatch or profile; and no word
    that the kernel printed, if it has run on one. A mode without hidden workloads may speak of a
    shape that it has drawn.
    """
    public = [workload for workload in result.workloads if not workload.hidden]
    names = {workload.name for workload in public}
    some_hidden = len(public) < len(result.workloads)
    mismatch = result.mismatch
    is_public = not some_hidden and not _looks_at_hidden(result.mode)
    if mismatch is not None and mismatch.workload not in names and not is_public:
        mismatch = None
    profile = result.profile if result.profile and result.profile.workload in names else None
    spreads = [w.measurement.relative_half_width for w in public if w.measurement]
    return Feedback(
        verdict=result.verdict.value,
        reason=result.reason,
        latency_ns=result.latency_ns,
        spread=max(spreads, default=None),
        speedups=result.speedups,
        workloads=tuple(filter(None, map(_time, public))),
        mismatch=mismatch,
        build_log=result.build.log if result.build else "",
        resources=tuple(map(_resources, result.build.resources)) if result.build else (),
        output="" if some_hidden else result.output,
        profile_tool=profile.tool if profile else "",
        profile_workload=profile.workload if profile else "",
        profile=profile.metrics if profile else {},
        profile_kernels=tuple(map(_kernel, profile.kernels)) if profile else (),
        profile_notes=(*profile.causes, *profile.notes) if profile else (),
    )


def _looks_at_hidden(mode: Mode) -> bool:
    plan = PLANS.get(mode)
    return plan is not None and plan.hidden


def _time(workload: WorkloadResult) -> WorkloadTime | None:
    measured = workload.measurement
    if measured is None:
        return None
    baselines = [baseline.time_ns for baseline in workload.baselines.values()]
    return WorkloadTime(
        name=workload.name,
        parameters={name: str(value) for name, value in workload.parameters.items()},
        time_ns=measured.time_ns,
        low_ns=measured.low_ns,
        high_ns=measured.high_ns,
        baseline_ns=min(baselines, default=None),
        floor_ns=workload.floor_ns,
    )


def _resources(kernel: KernelResources) -> str:
    spills = kernel.spill_store_bytes + kernel.spill_load_bytes
    return (
        f"{kernel.name}: {kernel.registers} registers a thread, {kernel.shared_bytes} bytes of "
        f"static shared memory, {kernel.stack_bytes} bytes of stack, "
        + (f"{spills} bytes of spills" if spills else "no spills")
    )


def _kernel(kernel: KernelMetrics) -> str:
    time = f"{kernel.duration_ns / 1e3:.2f} us" if kernel.duration_ns is not None else "no time"
    metrics = ", ".join(f"{name} {value:.4g}" for name, value in kernel.metrics.items())
    return f"{kernel.name}: {time}" + (f"; {metrics}" if metrics else "")
