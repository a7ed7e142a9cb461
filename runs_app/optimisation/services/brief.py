"""What the site's results tell prompts of a task and a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_runner.data.verdict import DeviceKind, Direction, Verdict
from runs_app.baselines.selectors import baselines, workload_baselines
from runs_app.evolve import brief
from runs_app.evolve.config import Briefing
from runs_app.models import Device, Result
from tasks_app.models import TaskVersion


def briefing_of(version: TaskVersion, device: Device, direction: Direction) -> Briefing:
    """What is known by now."""
    means = baselines(version, device, direction.value)
    environment, floors_ns, tensor_bytes = _newest(version, device, direction)
    figures = brief.Figures(
        environment=environment or _environment_of(device),
        means_ns=means.times_ns,
        floor_ns=means.floor_ns,
        baselines_ns=workload_baselines(version, device, direction.value),
        floors_ns=floors_ns,
        tensor_bytes=tensor_bytes,
    )
    return brief.briefing(version.data, DeviceKind(device.kind), direction, figures)


def _newest(
    version: TaskVersion, device: Device, direction: Direction
) -> tuple[Mapping[str, Any], dict[str, float], dict[str, float]]:
    """Environment, physical limits and sizes of the newest correct result; empty without one."""
    rows = Result.objects.filter(
        evaluation__task_version=version,
        evaluation__device=device,
        evaluation__direction=direction.value,
        evaluation__verdict=Verdict.CORRECT.value,
    ).order_by("-evaluation__finished_at")
    found = rows.values_list("document__environment", "document__workloads").first()
    if found is None:
        return {}, {}, {}
    environment, workloads = found
    hidden = set(version.hidden_names)
    public = [w for w in workloads or () if not w["hidden"] and w["name"] not in hidden]
    floors_ns, sizes = (
        {w["name"]: w[key] for w in public if w.get(key)} for key in ("floor_ns", "tensor_bytes")
    )
    return environment or {}, floors_ns, sizes


def _environment_of(device: Device) -> Mapping[str, Any]:
    """What another task's result says of the host; its rates are of that task's dtype."""
    rows = Result.objects.filter(
        evaluation__device=device, evaluation__verdict=Verdict.CORRECT.value
    ).order_by("-evaluation__finished_at")
    found = rows.values_list("document__environment", flat=True).first() or {}
    return {name: value for name, value in found.items() if name != "peaks"}
