"""How long it takes to have submissions evaluated again, and how that is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from django.db.models import Count, QuerySet

from gpu_runner.data.verdict import Mode
from runs_app.models import Device, Evaluation, Status
from runs_app.queue.selectors import DeviceQueue, queue_overview
from tasks_app.curation.reevaluation.plan import Plan
from tasks_app.people import Viewer

_SAMPLE = 200  # latest evaluations of a mode behind a median


@dataclass(frozen=True, kw_only=True)
class DeviceEstimate:
    """What a plan costs on a device.

    own_s: seconds of the evaluations themselves, ahead_s of the `ahead` ones that wait or run
    before them; None where nothing like them has ever ended. `known` of the `evaluations` have an
    earlier duration; `median_s` stands in for the others. `runners` share the work, at least one.
    `reason` says why nothing would be taken now; empty if something would.
    """

    device: Device
    evaluations: int
    known: int
    median_s: float | None
    own_s: float | None
    ahead: int
    ahead_s: float | None
    runners: int
    reason: str

    @property
    def guessed(self) -> int:
        """Evaluations without an earlier duration of their own."""
        return self.evaluations - self.known

    @property
    def total_s(self) -> float | None:
        """Seconds until the last one has ended, if nobody submits anything meanwhile."""
        if self.own_s is None or self.ahead_s is None:
            return None
        return (self.own_s + self.ahead_s) / self.runners


def estimates_of(plan: Plan, user: Viewer, now: datetime) -> list[DeviceEstimate]:
    """An estimate for each device of the plan that gets an evaluation."""
    queues = {queue.device.slug: queue for queue in queue_overview(user, now)}
    found = []
    for device in plan.choice.devices:
        rows = [each.evaluation for each in plan.queued if each.evaluation.device_id == device.slug]
        shipped = plan.shipped.get(device.slug, 0)
        if rows or shipped:
            found.append(_estimate(queues[device.slug], rows, shipped))
    return found


def estimate_together(
    plans: Iterable[Plan], device: Device, user: Viewer, now: datetime
) -> DeviceEstimate:
    """One estimate of all that several plans queue on a device."""
    queue = next(queue for queue in queue_overview(user, now) if queue.device == device)
    known = list(plans)
    rows = [each.evaluation for plan in known for each in plan.queued]
    return _estimate(queue, rows, sum(plan.shipped.get(device.slug, 0) for plan in known))


def _estimate(queue: DeviceQueue, rows: list[Evaluation], shipped: int) -> DeviceEstimate:
    durations = _durations(rows)
    usual_s = median(durations) if durations else _median_s(queue.device, Mode.RANKED.value)
    count = len(rows) + shipped
    others = count - len(durations)
    own_s = None if others and usual_s is None else sum(durations) + others * (usual_s or 0.0)
    ahead, ahead_s = _ahead(queue.device)
    return DeviceEstimate(
        device=queue.device,
        evaluations=count,
        known=len(durations),
        median_s=usual_s,
        own_s=own_s,
        ahead=ahead,
        ahead_s=ahead_s,
        runners=max(sum(status.takes_work for status in queue.runners), 1),
        reason=queue.reason,
    )


def _ahead(device: Device) -> tuple[int, float | None]:
    """What waits or runs on a device, and its seconds; what is new goes behind all of it."""
    under_way = Evaluation.objects.filter(
        device=device, status__in=(Status.QUEUED, Status.RUNNING)
    ).order_by()
    counts = list(under_way.values_list("mode").annotate(Count("pk")))
    total = sum(count for _, count in counts)
    seconds = [(count, _median_s(device, mode)) for mode, count in counts]
    if any(usual is None for _, usual in seconds):
        return total, None
    return total, sum(count * (usual or 0.0) for count, usual in seconds)


def _median_s(device: Device, mode: str) -> float | None:
    """Median duration of the latest evaluations of a mode, or of any where that has none."""
    ended = Evaluation.objects.filter(
        device=device, status=Status.FINISHED, started_at__isnull=False
    )
    found = _latest(ended.filter(mode=mode)) or _latest(ended)
    return median(found) if found else None


def _latest(rows: QuerySet[Evaluation]) -> list[float]:
    return _durations(rows.order_by("-finished_at").only("started_at", "finished_at")[:_SAMPLE])


def _durations(rows: Iterable[Evaluation]) -> list[float]:
    return [
        (row.finished_at - row.started_at).total_seconds()
        for row in rows
        if row.finished_at and row.started_at
    ]
