"""What a task's baselines and its physical floor are on a device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import geometric_mean
from typing import Any

from django.db.models import QuerySet

from gpu_runner.data import codec
from gpu_runner.data.baselines import BaselineReport, carried
from gpu_runner.data.evaluation import EvaluationResult, Measurement
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import BaselineMeasurement, Device, Result
from tasks_app.models import TaskVersion

_LOOKED_AT = 5  # newest results; one whose baselines failed may be among them


@dataclass(frozen=True, kw_only=True)
class Baselines:
    """Geometric means over the listed workloads, in nanoseconds, comparable with a latency.

    A baseline that is missing on a workload is left out; `floor_ns` is None if unknown.
    """

    times_ns: Mapping[str, float] = field(default_factory=dict)
    floor_ns: float | None = None


def baselines(version: TaskVersion, device: Device, direction: str) -> Baselines:
    """From the newest ranked results that hold any, or where there are none, measured apart.

    Floors are those of the newest correct result. Guests' results serve only where there are no
    others: prompts and pages of others tell these times.
    """
    rows = correct_results(version, device, direction)
    newest = [_public(version, document) for document in _documents(rows)[:1]]
    ranked = _documents(rows.filter(evaluation__mode=Mode.RANKED.value))[:_LOOKED_AT]
    found = (_times_ns(_public(version, document)) for document in ranked)
    times_ns = next(filter(None, found), None) or _measured_apart(version, device, direction)
    floors = [w["floor_ns"] for workloads in newest for w in workloads if w.get("floor_ns")]
    whole = bool(newest) and 0 < len(floors) == len(newest[0])
    return Baselines(times_ns=times_ns, floor_ns=geometric_mean(floors) if whole else None)


def correct_results(version: TaskVersion, device: Device, direction: str) -> QuerySet[Result]:
    """What is known from, newest first."""
    rows = Result.objects.filter(
        evaluation__task_version=version,
        evaluation__device=device,
        evaluation__direction=direction,
        evaluation__verdict=Verdict.CORRECT.value,
    )
    return of_trusted(rows)


def of_trusted(rows: QuerySet[Result]) -> QuerySet[Result]:
    """Results of runners that the admins control, else those of guests; the newest first."""
    trusted = rows.filter(evaluation__guest=False)
    return (trusted if trusted.exists() else rows).order_by("-evaluation__finished_at")


def workload_baselines(
    version: TaskVersion, device: Device, direction: str
) -> dict[str, dict[str, float]]:
    """Times of the baselines of each listed workload in nanoseconds, from the same results."""
    rows = correct_results(version, device, direction)
    for document in _documents(rows.filter(evaluation__mode=Mode.RANKED.value))[:_LOOKED_AT]:
        found = {w["name"]: _by_name(w["baselines"]) for w in _public(version, document)}
        if any(found.values()):
            return found
    measured = _report(version, device, direction)
    return {name: _by_name(times) for name, times in measured.items()}


def measured_baselines(
    version: TaskVersion, device: Device, direction: str, *, anchor_ns: float | None
) -> dict[str, dict[str, Measurement]]:
    """Each workload's known baselines, from the newest ranked result or else measured on their own.

    Their times are scaled to the device's speed at which the anchor takes `anchor_ns`.
    """
    found: dict[str, dict[str, Measurement]] = {}
    rows = BaselineMeasurement.objects.filter(
        version=version, device=device, direction=direction, report__isnull=False
    )
    for document in rows.order_by("-finished_at").values_list("report", flat=True)[:1]:
        report = codec.decode_stored(BaselineReport, document)
        found |= {name: dict(times) for name, times in report.at(anchor_ns).items()}
    ranked = correct_results(version, device, direction).filter(evaluation__mode=Mode.RANKED.value)
    for document in _documents(ranked)[:1]:
        result = codec.decode_stored(EvaluationResult, document)
        then = result.environment.anchor_ns
        then_ns = then.mean if then else None
        for each in result.workloads:
            times = {n: carried(m, then_ns, anchor_ns) for n, m in each.baselines.items()}
            found[each.name] = found.get(each.name, {}) | times
    return found


def _by_name(baselines: Mapping[str, Any]) -> dict[str, float]:
    return {name: measurement["time_ns"] for name, measurement in baselines.items()}


def _documents(rows: Any) -> Any:
    return rows.values_list("document", flat=True)


def _public(version: TaskVersion, document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    hidden = set(version.hidden_names)
    return [w for w in document["workloads"] if not w["hidden"] and w["name"] not in hidden]


def _measured_apart(version: TaskVersion, device: Device, direction: str) -> dict[str, float]:
    measured = _report(version, device, direction)
    return _times_ns([{"baselines": times} for times in measured.values()]) if measured else {}


def _report(version: TaskVersion, device: Device, direction: str) -> dict[str, Any]:
    """Baselines that were measured apart, by listed workload."""
    rows = BaselineMeasurement.objects.filter(
        version=version, device=device, direction=direction, report__isnull=False
    )
    report = rows.values_list("report", flat=True).first()
    if report is None:
        return {}
    hidden, measured = set(version.hidden_names), report["baselines"]
    return {name: measured[name] for name in measured if name not in hidden}


def _times_ns(workloads: list[Mapping[str, Any]]) -> dict[str, float]:
    """Means of the baselines that every one of these workloads has."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for workload in workloads:
        for name, measurement in workload["baselines"].items():
            times[name].append(measurement["time_ns"])
    return {
        name: geometric_mean(found) for name, found in times.items() if len(found) == len(workloads)
    }
