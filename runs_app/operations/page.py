"""What the pages of operations show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q

from runs_app.models import Announcement, Device, Evaluation, Runner, RunnerReading, Status
from runs_app.operations.readings import Curve, curves
from runs_app.queue.runners import RunnerStatus, runner_list
from runs_app.work.stops import in_force

_MOST_READINGS = 10_080  # of a week


@dataclass(frozen=True)
class DeviceRow:
    """A device with what waits and runs on it, and its runners."""

    device: Device
    waiting: int
    running: int
    runners: list[RunnerStatus]


@dataclass(frozen=True)
class Overview:
    """The whole site as an admin steers it."""

    announcements: list[Announcement]
    devices: list[DeviceRow]


def overview(now: datetime) -> Overview:
    """What is in force, and all devices."""
    counts: dict[str, Any] = {
        row["device"]: row
        for row in Evaluation.objects.filter(status__in=(Status.QUEUED, Status.RUNNING))
        .order_by()
        .values("device")
        .annotate(
            waiting=Count("pk", filter=Q(status=Status.QUEUED)),
            running=Count("pk", filter=Q(status=Status.RUNNING)),
        )
    }
    runners = runner_list(now)
    rows = [
        DeviceRow(
            device=device,
            waiting=counts.get(device.slug, {}).get("waiting", 0),
            running=counts.get(device.slug, {}).get("running", 0),
            runners=[each for each in runners if each.runner.device_id == device.slug],
        )
        for device in Device.objects.order_by("slug")
    ]
    announcements = list(in_force(now).select_related("made_by"))
    return Overview(announcements, [row for row in rows if row.runners or row.waiting])


@dataclass(frozen=True)
class SensorPage:
    """What a runner's sensors said in the last hours."""

    runner: Runner
    hours: int
    curves: list[Curve]
    unknown: list[str]
    since: datetime
    until: datetime


def sensor_page(runner: Runner, hours: int, now: datetime) -> SensorPage:
    """The curves of the last `hours`, and which sensors said nothing in them."""
    since = now - timedelta(hours=hours)
    rows = list(RunnerReading.objects.filter(runner=runner, at__gt=since)[:_MOST_READINGS])
    found = curves(rows, since, now)
    names = {"Temperature", "Clock", "Clock of the memory", "Power"} - {c.label for c in found}
    if runner.device.kind == "cpu":
        names -= {"Clock of the memory", "Power"}
    return SensorPage(runner, hours, found, sorted(names), since, now)
