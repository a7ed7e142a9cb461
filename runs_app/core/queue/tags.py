"""Says on a task's page which compilers build kernels, for which devices."""

from __future__ import annotations

from django import template

from gpu_runner.data.task import Task
from runs_app.core.queue import runners

register = template.Library()


@register.inclusion_tag("runs_app/queue/parts/toolchains.html")
def toolchains(data: Task) -> dict[str, object]:
    """A row for each device that the task has workloads for and that has runners."""
    kinds = {kind.value for workload in data.workloads for kind in workload.devices}
    return {"toolchains": runners.toolchains(kinds)}
