"""What the pages of operations show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Prefetch
from django.forms import Form

from runs_app.core.queue.loads import Load
from runs_app.core.queue.runners import RunnerStatus, runner_list
from runs_app.core.work.limits import in_force
from runs_app.features.operations.emptying import Waiting
from runs_app.features.operations.glance import Glance, glance, waiting_since
from runs_app.features.operations.models import Emptying, RunnerReading
from runs_app.features.operations.readings import Curve, curves
from runs_app.models import (
    Announcement,
    Device,
    Runner,
    RunnerFlag,
    RunnerToken,
)

_MOST_READINGS = 10_080  # of a week


@dataclass(frozen=True)
class DeviceRow:
    """A device with its queue, its runners, and whether its queue is emptied."""

    load: Load
    runners: list[RunnerStatus]
    emptying: Emptying | None
    waits_since: datetime | None
    """Since when people have waited; None if nobody does."""


@dataclass(frozen=True)
class TokenRow:
    """A runner's token with what is known of its hosts, and the open doubts about it."""

    token: RunnerToken
    devices: list[str]
    hosts: int
    seen_at: datetime | None
    flags: list[RunnerFlag]


@dataclass(frozen=True)
class Overview:
    """The whole site as an admin steers it."""

    glance: Glance
    announcements: list[Announcement]
    devices: list[DeviceRow]
    gone: list[RunnerStatus]
    """Runners that stopped or have been silent for a day, which `devices` leaves out."""
    tokens: list[TokenRow]


@dataclass(frozen=True, kw_only=True)
class EmptyingPage:
    """What could be emptied of a device's queue, and how far the latest emptying is."""

    device: Device
    parts: list[Waiting]
    form: Form
    latest: Emptying | None


def overview(now: datetime) -> Overview:
    """How the site is doing, what is in force, and all devices."""
    seen = glance(now)
    known = runner_list(now)
    runners = [each for each in known if not each.is_gone]
    gone = [each for each in known if each.is_gone]
    emptyings = {each.device_id: each for each in Emptying.objects.filter(finished_at=None)}
    since = waiting_since()
    rows = [
        DeviceRow(
            load=load,
            runners=[each for each in runners if each.runner.device_id == load.device.slug],
            emptying=emptyings.get(load.device.slug),
            waits_since=since.get(load.device.slug),
        )
        for load in seen.loads
    ]
    announcements = list(in_force(now).select_related("made_by"))
    shown = [row for row in rows if row.runners or row.load.waiting]
    return Overview(seen, announcements, shown, gone, _token_rows())


def _token_rows() -> list[TokenRow]:
    """The tokens that let somebody in."""
    opened = Prefetch(
        "flags", RunnerFlag.objects.filter(cleared_at=None).select_related("evaluation"), "opened"
    )
    tokens = RunnerToken.objects.filter(revoked_at=None).prefetch_related("devices", opened)
    return [
        TokenRow(
            token=token,
            devices=[device.name for device in token.devices.all()],
            hosts=token.hosts,
            seen_at=token.seen_at,
            flags=token.opened,
        )
        for token in tokens.annotate(hosts=Count("runners"), seen_at=Max("runners__seen_at"))
    ]


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
    names = {"Temperature", "Clock", "Memory clock", "Power"} - {c.label for c in found}
    if runner.device.kind == "cpu":
        names -= {"Memory clock", "Power"}
    return SensorPage(runner, hours, found, sorted(names), since, now)
