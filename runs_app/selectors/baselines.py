"""What a task's baselines and its physical floor are on a device."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Device, Result
from tasks_app.models import TaskVersion

_LOOKED_AT = 5  # newest results; one whose baselines failed may be among them


@dataclass(frozen=True, kw_only=True)
class Baselines:
    """Geometric means over the public workloads, in nanoseconds, comparable with a latency.

    A baseline that is missing on a workload is left out; `floor_ns` is None if unknown.
    """

    times_ns: Mapping[str, float] = field(default_factory=dict)
    floor_ns: float | None = None


def baselines(version: TaskVersion, device: Device, direction: str) -> Baselines:
    """From the newest ranked correct results that hold any."""
    rows = Result.objects.filter(
        evaluation__task_version=version,
        evaluation__device=device,
        evaluation__direction=direction,
        evaluation__mode=Mode.RANKED.value,
        evaluation__verdict=Verdict.CORRECT.value,
    ).order_by("-evaluation__finished_at")
    hidden = set(version.hidden_names)
    for document in rows.values_list("document", flat=True)[:_LOOKED_AT]:
        workloads = [
            workload
            for workload in document["workloads"]
            if not workload["hidden"] and workload["name"] not in hidden
        ]
        found = _means(workloads)
        if found.times_ns:
            return found
    return Baselines()


def _means(workloads: list[dict[str, object]]) -> Baselines:
    times: defaultdict[str, list[float]] = defaultdict(list)
    floors = []
    for workload in workloads:
        measured = workload.get("baselines") or {}
        assert isinstance(measured, dict), "a result was checked before it was stored"
        for name, measurement in measured.items():
            times[name].append(measurement["time_ns"])
        floor = workload.get("floor_ns")
        floors += [floor] if isinstance(floor, int | float) and floor > 0 else []
    whole = {name: _mean(found) for name, found in times.items() if len(found) == len(workloads)}
    floor_ns = _mean(floors) if floors and len(floors) == len(workloads) else None
    return Baselines(times_ns=whole, floor_ns=floor_ns)


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
