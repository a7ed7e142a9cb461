"""How full each device's queue is: counts alone, for pages that say no more."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from gpu_runner.data.queue import OF_PEOPLE
from runs_app.core.queue.devices import devices
from runs_app.core.queue.runners import RunnerStatus, runner_list
from runs_app.core.queue.selectors import Bar, load_bar, why_blocked
from runs_app.models import JOBS, Device, Status

_OF_PEOPLE = tuple(each.place for each in OF_PEOPLE)


@dataclass(frozen=True, kw_only=True)
class Load:
    """Jobs of all kinds that are under way on one device."""

    device: Device
    running: int
    people: int
    """How many wait that people submitted."""
    behind: int
    """How many wait behind those: of runs, audits, baselines and the site's own."""
    has_runners: bool
    """Whether a runner has ever reported."""
    reason: str
    """Why no work would be taken now; empty if some would."""

    @property
    def waiting(self) -> int:
        """All that wait."""
        return self.people + self.behind

    def bar(self, whole: int = 0) -> Bar:
        """The load as a bar that so many jobs fill."""
        return load_bar(self.running, self.people, self.behind, whole)


def loads(now: datetime) -> list[Load]:
    """The load of every device; the number of queries depends on nothing."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for job in JOBS.values():
        under_way = job._default_manager.filter(finished_at=None).order_by()
        rows = under_way.values_list("device_id", "status", "queue_place")
        for device, status, place, count in rows.annotate(count=Count("pk")):
            kind = "people" if place in _OF_PEOPLE else "behind"
            counts[device, "running" if status == Status.RUNNING else kind] += count
    runners: dict[str, list[RunnerStatus]] = defaultdict(list)
    for each in runner_list(now):
        runners[each.runner.device_id].append(each)
    return [
        Load(
            device=device,
            running=counts[device.slug, "running"],
            people=counts[device.slug, "people"],
            behind=counts[device.slug, "behind"],
            has_runners=bool(runners[device.slug]),
            reason=why_blocked(device, runners[device.slug]),
        )
        for device in devices()
    ]
