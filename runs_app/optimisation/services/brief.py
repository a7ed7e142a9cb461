"""What prompts tell of the device, the bound and the known times: the expert's brief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_runner.data.task import VERIFIER, Task, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from runs_app.baselines.selectors import baselines, workload_baselines
from runs_app.evolve.config import Facts, KnownTimes
from runs_app.evolve.hardware import compiler_of, hardware_lines, measured_rates, processors_of
from runs_app.models import Device, Result
from tasks_app.models import TaskVersion

_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_MEASURED = (
    "estimates: bytes that must move, or operations, at the rates that plain loops reach on this"
    " host; a good kernel may be faster"
)
_THEORETICAL = "of the device's peak rates, each input read and each output written once"


def facts_of(version: TaskVersion, device: Device, direction: Direction) -> Facts:
    """What has been measured by now."""
    means = baselines(version, device, direction.value)
    environment = _environment_of(device)
    known, source = _known_times(version, device, direction, environment)
    return Facts(
        baselines_ns=means.times_ns,
        floor_ns=means.floor_ns,
        known=known,
        limit_source=source,
        hardware=hardware_lines(environment),
        processors=processors_of(environment),
        compiler=compiler_of(environment),
        call_limit_s=(environment.get("hardware") or {}).get("call_timeout_s"),
    )


def _environment_of(device: Device) -> Mapping[str, Any]:
    """What the newest result of the device says of its host; empty where there is none."""
    rows = Result.objects.filter(evaluation__device=device).order_by("-evaluation__finished_at")
    found = rows.values_list("document__environment", flat=True).first()
    return found or {}


def _known_times(
    version: TaskVersion,
    device: Device,
    direction: Direction,
    environment: Mapping[str, Any],
) -> tuple[tuple[KnownTimes, ...], str]:
    """Baselines and limit of each public workload, and where the limits come from."""
    data, kind = version.data, DeviceKind(device.kind)
    workloads = data.workloads_for(kind, direction, hidden=False)
    times = workload_baselines(version, device, direction.value)
    limits, source = _limits(version, device, direction, environment, workloads)
    known = tuple(
        KnownTimes(
            workload=workload.name,
            baselines_ns=times.get(workload.name, {}),
            limit_ns=limits[workload.name][0] if workload.name in limits else None,
            limit_by=limits[workload.name][1] if workload.name in limits else "",
        )
        for workload in workloads
    )
    return known, source if limits else ""


def _limits(
    version: TaskVersion,
    device: Device,
    direction: Direction,
    environment: Mapping[str, Any],
    workloads: Sequence[Workload],
) -> tuple[dict[str, tuple[float, str]], str]:
    """By workload: the physical limit in nanoseconds, else an estimate and what it comes from."""
    rows = Result.objects.filter(
        evaluation__task_version=version,
        evaluation__device=device,
        evaluation__direction=direction.value,
        evaluation__verdict="CORRECT",
    ).order_by("-evaluation__finished_at")
    document = rows.values_list("document__workloads", flat=True).first() or []
    names = {workload.name for workload in workloads}
    known = [w for w in document if w.get("floor_ns") and w["name"] in names]
    if known:
        return {w["name"]: (w["floor_ns"], "") for w in known}, _THEORETICAL
    rates = measured_rates(environment)
    if rates is None:
        return {}, ""
    moved, computed = rates
    costs = {workload.name: version.data.cost(workload, direction) for workload in workloads}
    return {
        name: max((cost.bytes / moved * 1e9, "memory"), (cost.flops / computed * 1e9, "arithmetic"))
        for name, cost in costs.items()
        if cost is not None
    }, _MEASURED


def tolerance_text(task: Task, workloads: Sequence[Workload], direction: Direction) -> str:
    """The bound on an element's error in numbers; the reference has the scale where it has one."""
    if task.has_verifier:
        return f"Whether outputs are right is decided by `{VERIFIER}` of the reference."
    bound, eps = task.tolerance, _EPS.get(task.dtype, _EPS["float32"])
    scale = f"{direction.value}_scale"
    has_own = any(f"def {scale}(" in text for text in task.files.values())
    lengths = [task.reduction_length(workload) for workload in workloads]
    factors = [eps * (bound.constant + bound.growth * length**0.5) for length in lengths]
    low, high = min(factors), max(factors)
    numbers = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    what = f"what `{scale}` of the reference returns" if has_own else "|expected| + rms(expected)"
    return (
        f"An output element passes if |actual - expected| <= {eps:.3g} * ({bound.constant:g} +"
        f" {bound.growth:g} * sqrt(L)) * scale. L = {bound.reduction}, the terms that an element"
        f" sums up, and scale is {what}. On the workloads below that is {numbers} times the scale."
    )
