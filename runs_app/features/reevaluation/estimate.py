"""How long it takes to have kernels measured again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import mean

from runs_app.core.queue.runners import runner_list
from runs_app.core.queue.selectors import why_blocked
from runs_app.core.work.estimate import work_s
from runs_app.features.reevaluation.plan import Plan
from runs_app.models import UNDER_WAY, Device, Evaluation


@dataclass(frozen=True, kw_only=True)
class DeviceEstimate:
    """What plans cost on a device.

    total_s: seconds until the last evaluation has ended, if nobody submits anything meanwhile;
    None if nobody knows what those kernels took before. `ahead` evaluations wait or run before
    them. `reason` says why nothing would be taken now; empty if something would.
    """

    device: Device
    evaluations: int
    ahead: int
    total_s: float | None
    reason: str


def estimates_of(plan: Plan, now: datetime) -> list[DeviceEstimate]:
    """An estimate for each device of a plan that gets an evaluation."""
    found = (estimate_on(device, [plan], now) for device in plan.choice.devices)
    return [each for each in found if each.evaluations]


def estimate_on(device: Device, plans: Iterable[Plan], now: datetime) -> DeviceEstimate:
    """Of all that several plans queue on a device.

    Each kernel takes as long as before, and what is ahead as long as its like did lately. Runners
    that take work share it.
    """
    queued = [each.evaluation for plan in plans for each in plan.queued]
    rows = [row for row in queued if row.device_id == device.slug]
    ahead = Evaluation.objects.filter(device=device, status__in=UNDER_WAY)
    runners = runner_list(now, device.slug)
    shared_by = max(sum(status.takes_work for status in runners), 1)
    known = [
        (row.finished_at - row.started_at).total_seconds()
        for row in rows
        if row.started_at and row.finished_at
    ]
    total_s = len(rows) * mean(known) + work_s(device.slug, ahead) if known else None
    return DeviceEstimate(
        device=device,
        evaluations=len(rows),
        ahead=ahead.count(),
        total_s=None if total_s is None else total_s / shared_by,
        reason=why_blocked(device.slug, runners),
    )
