"""What the site's results tell prompts of a task and a device."""

from __future__ import annotations

from gpu_runner.data.codec import decode_stored
from gpu_runner.data.environment import Environment
from gpu_runner.data.verdict import DeviceKind, Direction
from runs_app.core.baselines.selectors import baselines, correct_results, workload_baselines
from runs_app.core.work.environments import newest_environment
from runs_app.models import Device
from runs_app.optimiser.evolve import brief
from runs_app.optimiser.evolve.config import Briefing
from tasks_app.models import TaskVersion


def briefing_of(version: TaskVersion, device: Device, direction: Direction) -> Briefing:
    """What is known by now."""
    means = baselines(version, device, direction.value)
    environment, floors_ns, tensor_bytes = _newest(version, device, direction)
    figures = brief.Figures(
        environment=environment or newest_environment(device),
        means_ns=means.times_ns,
        floor_ns=means.floor_ns,
        baselines_ns=workload_baselines(version, device, direction.value),
        floors_ns=floors_ns,
        tensor_bytes=tensor_bytes,
    )
    return brief.briefing(version.data, DeviceKind(device.kind), direction, figures)


def _newest(
    version: TaskVersion, device: Device, direction: Direction
) -> tuple[Environment | None, dict[str, float], dict[str, float]]:
    """Environment, physical limits and sizes of the newest correct result, if there is one."""
    rows = correct_results(version, device, direction.value)
    found = rows.values_list("document__environment", "document__workloads").first()
    if found is None:
        return None, {}, {}
    environment, workloads = found
    hidden = set(version.hidden_names)
    public = [w for w in workloads or () if not w["hidden"] and w["name"] not in hidden]
    floors_ns, sizes = (
        {w["name"]: w[key] for w in public if w.get(key)} for key in ("floor_ns", "tensor_bytes")
    )
    return environment and decode_stored(Environment, environment), floors_ns, sizes
