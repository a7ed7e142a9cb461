"""Says on a task's page which compilers build kernels, for which devices."""

from __future__ import annotations

from django import template

from gpu_runner.data.task import Task
from runs_app.core.queue import runners
from runs_app.core.work import environments
from runs_app.models import Device

register = template.Library()


@register.simple_tag
def cpu_in_short(device: Device) -> str:
    """How many processors a kernel gets on a CPU, with their vectors and caches."""
    return environments.cpu_in_short(device)


@register.inclusion_tag("runs_app/queue/parts/toolchains.html")
def toolchains(data: Task) -> dict[str, object]:
    """A row for each device that the task has workloads for and that has runners."""
    kinds = {kind.value for workload in data.workloads for kind in workload.devices}
    return {"toolchains": runners.toolchains(kinds)}
