"""What the site's results tell prompts of a task and a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_runner.data.verdict import DeviceKind, Direction
from runs_app.baselines.selectors import baselines, workload_baselines
from runs_app.evolve import brief
from runs_app.evolve.config import Facts
from runs_app.models import Device, Result
from tasks_app.models import TaskVersion


def facts_of(version: TaskVersion, device: Device, direction: Direction) -> Facts:
    """What has been measured by now."""
    means = baselines(version, device, direction.value)
    measured = brief.Measured(
        environment=_environment_of(device),
        means_ns=means.times_ns,
        floor_ns=means.floor_ns,
        baselines_ns=workload_baselines(version, device, direction.value),
        floors_ns=_floors_ns(version, device, direction),
    )
    return brief.facts_of(version.data, DeviceKind(device.kind), direction, measured)


def _environment_of(device: Device) -> Mapping[str, Any]:
    """What the newest result of the device says of its host; empty where there is none."""
    rows = Result.objects.filter(evaluation__device=device).order_by("-evaluation__finished_at")
    found = rows.values_list("document__environment", flat=True).first()
    return found or {}


def _floors_ns(version: TaskVersion, device: Device, direction: Direction) -> dict[str, float]:
    """Physical limits by workload, of the newest correct result; hidden workloads among them."""
    rows = Result.objects.filter(
        evaluation__task_version=version,
        evaluation__device=device,
        evaluation__direction=direction.value,
        evaluation__verdict="CORRECT",
    ).order_by("-evaluation__finished_at")
    document = rows.values_list("document__workloads", flat=True).first() or []
    return {w["name"]: w["floor_ns"] for w in document if w.get("floor_ns")}
