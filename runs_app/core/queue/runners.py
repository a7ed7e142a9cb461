"""Which runners there are, and how they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from gpu_runner.data.packages import ABSENT, imported_packages
from runs_app.core.work.environments import cpu_in_short
from runs_app.models import Device, Runner
from tasks_app.templatetags.display import period

_LONG_S = 24 * 3600  # chosen: whoever waits for a runner looks once a day


@dataclass(frozen=True)
class RunnerStatus:
    """A runner with the age of its last heartbeat in seconds."""

    runner: Runner
    age_s: float
    alive: bool

    @property
    def takes_work(self) -> bool:
        """Whether it would take the next job."""
        return self.alive and self.runner.state == Runner.State.READY

    @property
    def state(self) -> str:
        """Its state, or "silent", or "disabled" once it heeds an admin who wants that."""
        if not self.alive:
            return "stopped" if self.runner.state == Runner.State.STOPPED else "silent"
        if self.heeds and self.runner.wanted == Runner.Wanted.DISABLE:
            return "disabled"
        return self.runner.state

    @property
    def is_gone(self) -> bool:
        """Whether it stopped, was revoked, or has been silent for long."""
        return self.runner.state == Runner.State.STOPPED or self.age_s > _LONG_S

    @property
    def heeds(self) -> bool:
        """Whether it does what an admin wants of it."""
        held = self.runner.state == Runner.State.DRAINING
        return held == (self.runner.wanted != Runner.Wanted.WORK)

    @property
    def summary(self) -> str:
        """One line for people."""
        if not self.alive:
            return f"silent for {period(self.age_s)}"
        if not self.runner.reason:
            return self.state
        return f"{self.state} ({self.runner.reason})"


def runner_list(now: datetime, device_slug: str = "") -> list[RunnerStatus]:
    """All runners, or those of one device, by device and name."""
    rows = Runner.objects.select_related("device", "token").order_by("device_id", "name")
    return statuses(rows.filter(device_id=device_slug) if device_slug else rows, now)


def no_runner(now: datetime) -> bool:
    """Whether no runner of any device is connected, so that all submissions wait."""
    return not any(status.alive for status in runner_list(now))


def statuses(runners: Iterable[Runner], now: datetime) -> list[RunnerStatus]:
    """The status of each runner at `now`."""
    limit = timedelta(seconds=settings.RUNNER_TIMEOUT_S)
    return [
        RunnerStatus(
            runner=runner,
            age_s=max((now - runner.seen_at).total_seconds(), 0.0),
            alive=now - runner.seen_at <= limit and runner.state != Runner.State.STOPPED,
        )
        for runner in runners
    ]


@dataclass(frozen=True)
class Toolchain:
    """What a device's runners build kernels with, and for; `facts` says what a CPU is."""

    device: Device
    compiler: str
    architecture: str
    packages: str
    facts: str


def toolchains(kinds: Iterable[str]) -> list[Toolchain]:
    """Of devices of these kinds with a runner that has not stopped; one each, if they are alike."""
    rows = Runner.objects.exclude(compiler="").exclude(state=Runner.State.STOPPED)
    found = rows.filter(device__kind__in=list(kinds)).select_related("device")
    facts = {device: cpu_in_short(device) for device in {row.device for row in found}}
    each = (
        Toolchain(r.device, r.compiler, r.architecture, _packages(r), facts[r.device])
        for r in found
    )
    return sorted(set(each), key=lambda t: (t.device.slug, t.compiler, t.architecture, t.packages))


def lacking_packages(device: Device, source: str) -> tuple[str, ...]:
    """What a Python source imports that each runner of the device has said to lack."""
    rows = Runner.objects.filter(device=device).exclude(state=Runner.State.STOPPED)
    told = list(rows.values_list("packages", flat=True))
    wanted = imported_packages(source) if told else ()
    return tuple(n for n in wanted if all(packages.get(n) == ABSENT for packages in told))


def _packages(runner: Runner) -> str:
    return ", ".join(f"{name} {version}" for name, version in runner.packages.items() if version)
