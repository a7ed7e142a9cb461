"""What waits, for how long, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from gpu_runner.data.queue import OF_PEOPLE, OF_THE_SITE, Urgency
from gpu_runner.data.verdict import Mode
from runs_app.core.checks.selectors import CheckEntry, check_entries
from runs_app.core.queue.devices import devices
from runs_app.core.queue.runners import RunnerStatus, runner_list
from runs_app.core.work.access import may_see
from runs_app.core.work.audit_state import board_audit
from runs_app.core.work.estimate import (
    OVERDUE_S,
    estimate,
    estimate_of_baselines,
    in_words,
    left_s,
    when,
    work_s,
)
from runs_app.core.work.result_state import PROVISIONAL, result_state
from runs_app.models import (
    UNDER_WAY,
    Audited,
    BaselineMeasurement,
    Device,
    Evaluation,
    Status,
    TaskCheck,
)
from runs_app.models.runner_job import SPOOL
from tasks_app import drawings
from tasks_app.people import Viewer
from tasks_app.templatetags.display import period

_PROMPT_S = 30  # chosen: a free runner asks for jobs every few seconds
_OVERDUE_S = 1  # left of a job that takes longer than its like did: nobody knows
_SAMPLE = 500  # evaluations behind the percentiles of waiting times

_LISTED = (
    "attempt", "direction", "mode", "queue_place", "queued_at", "reason", "stage", "started_at",
    "runner__name", "task_version__task__slug",
    "submission__agent__name", "submission__author", "submission__origin", "submission__private",
    "submission__run",
)  # fmt: skip

_NEEDING = ~Q(mode=Mode.COMPILE.value)  # what needs the device


@dataclass(frozen=True)
class QueueEntry:
    """A place in a queue; `evaluation` is None where the viewer may not see it.

    `own` is true of the site's own work, which nobody waits for.
    """

    position: int
    waiting_s: float
    evaluation: Evaluation | None
    own: bool

    @property
    def soon(self) -> str:
        """When it begins if it is next and a runner is free."""
        return soon(self.waiting_s)


@dataclass(frozen=True)
class DeviceQueue:
    """A device with its queue and runners.

    `waiting` holds the first places, `depth` counts them all, and `behind` those among them that
    wait behind people's; `own_depth` counts the site's own. `wait_p50_s` and
    `wait_p95_s` are the median and the 95th percentile of the last day's waiting times; None where
    nothing has run. `checks` of tasks and `measurements` of baselines count into none of these.
    `runners` are those that aren't gone. `reason` says why nothing would be taken now; empty if
    something would.
    """

    device: Device
    depth: int
    behind: int
    own_depth: int
    waiting: list[QueueEntry]
    running: list[QueueEntry]
    checks: list[CheckEntry]
    measurements: list[BaselineMeasurement]
    runners: list[RunnerStatus]
    wait_p50_s: float | None
    wait_p95_s: float | None
    reason: str

    @property
    def measuring(self) -> list[BaselineMeasurement]:
        """The measurements of baselines that have the device."""
        return [job for job in self.measurements if job.status == Status.RUNNING]

    @property
    def waiting_measurements(self) -> list[BaselineMeasurement]:
        """Those that wait."""
        return [job for job in self.measurements if job.status != Status.RUNNING]

    @property
    def waiting_own(self) -> list[QueueEntry]:
        """The entries of `waiting` that are the site's own."""
        return [entry for entry in self.waiting if entry.own]

    @property
    def waiting_of_people(self) -> list[QueueEntry]:
        """The entries of `waiting` that people submitted, or that belong to their runs."""
        return [entry for entry in self.waiting if not entry.own]

    @property
    def bar(self) -> Bar:
        """What runs and waits, drawn."""
        return load_bar(self.busy, self.depth - self.behind, self.behind)

    @property
    def busy(self) -> int:
        """How many jobs of any kind run: what its runners say, and evaluations in a spool."""
        said = sum(len(each.runner.current) for each in self.runners if each.alive)
        return max(len(self.running), said)

    @property
    def ahead(self) -> int:
        """How many a new submission would wait for, beside those that run."""
        return self.depth - self.behind


def queue_overview(user: Viewer, now: datetime, most: int) -> list[DeviceQueue]:
    """Every device's queue and runners, as `user` may see them, with `most` that wait on each."""
    return [_device_queue(device, user, now, most) for device in devices()]


def waiting_reason(evaluation: Evaluation, now: datetime) -> str:
    """Why a queued evaluation has not begun, or a result isn't final yet; empty for any other.

    Says so if nobody will take it, or if it is in a spool; otherwise gives its place, what its
    runners do, and when what it waits for will come, by what its like took lately.
    """
    if evaluation.spool:
        at = f"in the spool {evaluation.spool}, which another host is working on"
        return f"{at}; its results will arrive when the spool is imported"
    if evaluation.status != Status.QUEUED and result_state(evaluation) is not PROVISIONAL:
        return ""
    runners = runner_list(now, evaluation.device_id)
    blocked = why_blocked(evaluation.device, runners)
    if evaluation.is_over:
        return f"still ranking, but {blocked}" if blocked else _ranking(evaluation, now)
    ahead = _ahead_of(evaluation)
    place = ahead.count() + 1
    position = "next in the queue" if place == 1 else f"number {place} in the queue"
    if blocked:
        return f"{position}, but {blocked}"
    ready = [status.runner for status in runners if status.takes_work]
    busy = [runner.name for runner in ready if runner.current]
    seconds = verdict_in_s(evaluation, now)
    verdict = "" if seconds is None else f"; expect its verdict in about {in_words(seconds)}"
    if len(busy) == len(ready):
        those = f"{' and '.join(busy)} {'is' if len(busy) == 1 else 'are'}"
        is_unknown = _others_s(evaluation.device_id, now) is None
        unknown = ", and we can't tell for how long" if is_unknown else ""
        return f"{position}; {those} busy with other jobs{unknown}{verdict}"
    return f"{position}; {soon((now - evaluation.queued_at).total_seconds())}{verdict}"


def _ranking(evaluation: Evaluation, now: datetime) -> str:
    """When the baselines and the audit of a provisional result will come."""
    expected: dict[str, float | None] = {}
    under_way = BaselineMeasurement.objects.filter(
        version=evaluation.task_version_id,
        direction=evaluation.direction,
        device=evaluation.device_id,
        status__in=UNDER_WAY,
    )
    if evaluation.awaits_baselines:
        measured = under_way.first()
        expected["baselines"] = _baselines_in_s(measured, now) if measured else None
    if evaluation.audited == Audited.WAITING:
        audit = board_audit(evaluation.submission, evaluation.device_id)
        audited = audit.evaluation if audit else None
        expected["audit"] = verdict_in_s(audited, now) if audited else None
    known = [f"its {name} {when(s)}" for name, s in expected.items() if s is not None]
    if known:
        return f"still ranking; expect {' and '.join(known)}"
    return f"still ranking; waiting for its {' and '.join(expected)}"


def _baselines_in_s(measured: BaselineMeasurement, now: datetime) -> float | None:
    """Seconds until baselines are measured, by similar ones; None if unknown."""
    known = estimate_of_baselines(measured.device_id)
    if known is None:
        return None
    if measured.started_at and measured.status == Status.RUNNING:
        return known.left_s(measured.started_at, now)
    sooner = BaselineMeasurement.objects.filter(
        device=measured.device_id, status__in=UNDER_WAY, queued_at__lt=measured.queued_at
    ).count()
    ahead = _waiting(measured.device_id).filter(queue_place__lt=measured.queue_place)
    before_s = _before_s(measured.device_id, ahead, measured.urgency, now)
    return before_s + (sooner + 1) * known.median_s


def soon(waited_s: float) -> str:
    """When a job that is next begins while a runner is free."""
    if waited_s < _PROMPT_S:
        return "a runner is free and will take it within seconds"
    return "it starts as soon as a runner asks for its next job"


def verdict_in_s(evaluation: Evaluation, now: datetime) -> float | None:
    """Seconds until an evaluation that waits or runs ends, by similar ones; None if unknown."""
    known = estimate(evaluation.device_id, evaluation.mode)
    if known is None:
        return None
    if evaluation.started_at and evaluation.status == Status.RUNNING:
        return known.left_s(evaluation.started_at, now)
    others_s = _others_s(evaluation.device_id, now)
    before_s = _before_s(evaluation.device_id, _ahead_of(evaluation), evaluation.urgency, now)
    return None if others_s is None else others_s + before_s + known.median_s


def _others_s(device_slug: str, now: datetime) -> float | None:
    """Seconds until running task checks and baselines leave their runner; None if unknown.

    They step aside from the device, but an evaluation that is still queued found no free slot.
    """
    checks, measured = (
        job.objects.filter(device=device_slug, status=Status.RUNNING).exclude(
            runner_boot_id__startswith=SPOOL
        )
        for job in (TaskCheck, BaselineMeasurement)
    )
    begun = list(measured.values_list("started_at", flat=True))
    known = estimate_of_baselines(device_slug) if begun else None
    ready = [status.runner for status in runner_list(now, device_slug) if status.takes_work]
    if any(not runner.current for runner in ready):
        return 0.0
    left = [known.left_s(at, now) if known and at else 0.0 for at in begun]
    is_unknown = checks.exists() or any(seconds <= _OVERDUE_S for seconds in left)
    return None if is_unknown else sum(left, 0.0)


def wait_of_people(device_slug: str, now: datetime) -> str:
    """What somebody who submits now waits for, in words; empty where nothing is known of it."""
    ahead = _waiting(device_slug).filter(Evaluation.waits_as(*OF_PEOPLE))
    seconds = _before_s(device_slug, ahead, Urgency.PEOPLE, now)
    if ahead.exists():
        return f"about {in_words(seconds)} of work ahead of yours" if seconds else ""
    running = _running(device_slug, Urgency.PEOPLE).count()
    if not running:
        return ""
    words = f"{'one is' if running == 1 else f'{running} are'} being measured now"
    if seconds and seconds <= running * OVERDUE_S:
        return f"{words}, for longer than usual"
    return f"{words}, for about {in_words(seconds)} more" if seconds else words


def _ahead_of(evaluation: Evaluation) -> QuerySet[Evaluation]:
    earlier = Q(queued_at__lt=evaluation.queued_at)
    earlier |= Q(queued_at=evaluation.queued_at, pk__lt=evaluation.pk)
    ahead = Q(queue_place__lt=evaluation.queue_place)
    ahead |= Q(queue_place=evaluation.queue_place) & earlier
    return _waiting(evaluation.device_id).filter(ahead)


def _before_s(
    device_slug: str, ahead: QuerySet[Evaluation], urgency: Urgency, now: datetime
) -> float:
    """Seconds of work that the device does first: what runs counts with what is left of it.

    What is less urgent steps aside, and a build needs no device.
    """
    if urgency is Urgency.BUILDS:
        return 0.0
    running = _running(device_slug, urgency)
    return work_s(device_slug, ahead.filter(_NEEDING)) + left_s(device_slug, running, now)


def _running(device_slug: str, urgency: Urgency) -> QuerySet[Evaluation]:
    """What the device measures now, and would not step aside from."""
    rows = Evaluation.objects.filter(_NEEDING, device_id=device_slug, status=Status.RUNNING)
    return rows.filter(queue_place__lte=urgency.place)


def _device_queue(device: Device, user: Viewer, now: datetime, most: int) -> DeviceQueue:
    runners = runner_list(now, device.slug)
    waiting = _waiting(device.slug)
    running = _with_lists(Evaluation.objects.filter(device=device, status=Status.RUNNING))
    waits = _waits(device, now)
    return DeviceQueue(
        device=device,
        depth=waiting.count(),
        behind=waiting.exclude(Evaluation.waits_as(*OF_PEOPLE)).count(),
        own_depth=waiting.filter(Evaluation.waits_as(*OF_THE_SITE)).count(),
        waiting=_entries(_with_lists(waiting)[:most], user, now),
        running=_entries(running.order_by("started_at"), user, now),
        checks=check_entries(device.slug, user, now),
        measurements=list(_measurements(device)),
        runners=[each for each in runners if not each.is_gone],
        wait_p50_s=_percentile(waits, 0.50),
        wait_p95_s=_percentile(waits, 0.95),
        reason=why_blocked(device, runners),
    )


def _measurements(device: Device) -> QuerySet[BaselineMeasurement]:
    """Those under way, of tasks that everybody may see."""
    rows = BaselineMeasurement.objects.filter(device=device, status__in=UNDER_WAY)
    published = rows.exclude(version__published_at=None)
    return published.select_related("version__task", "runner").order_by("queued_at", "pk")


def _waiting(device_slug: str) -> QuerySet[Evaluation]:
    rows = Evaluation.objects.filter(device_id=device_slug, status=Status.QUEUED)
    return rows.order_by("queue_place", "queued_at", "pk")


def _with_lists(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """With what lists show; of hundreds of rows all columns would take most of the page's time."""
    return rows.select_related("submission__agent", "task_version__task", "runner").only(*_LISTED)


def _entries(rows: Iterable[Evaluation], user: Viewer, now: datetime) -> list[QueueEntry]:
    return [
        QueueEntry(
            position=place,
            waiting_s=max(((row.started_at or now) - row.queued_at).total_seconds(), 0.0),
            evaluation=row if may_see(user, row.submission) else None,
            own=row.urgency in OF_THE_SITE,
        )
        for place, row in enumerate(rows, start=1)
    ]


def why_blocked(device: Device, runners: list[RunnerStatus]) -> str:
    """Why no runner of a device would take work; empty if one would."""
    if any(status.takes_work for status in runners):
        return ""
    if not runners:
        return f"no runner for {device} has ever reported"
    alive = [status for status in runners if status.alive]
    if alive:
        names = "; ".join(f"{status.runner.name} is {status.summary}" for status in alive)
        return f"no runner is taking work: {names}"
    latest = min(runners, key=lambda status: status.age_s)
    name, silence = latest.runner.name, period(latest.age_s)
    return f"no runner for {device} is responding: {name} was last heard from {silence} ago"


def _waits(device: Device, now: datetime) -> list[float]:
    """Waiting times of the last day's evaluations in seconds, in ascending order."""
    rows = (
        Evaluation.objects.filter(
            device=device, started_at__isnull=False, created_at__gte=now - timedelta(days=1)
        )
        .order_by("-created_at")
        .values_list("queued_at", "started_at")[:_SAMPLE]
    )
    return sorted(
        max((started - queued).total_seconds(), 0.0) for queued, started in rows if started
    )


def _percentile(ascending: list[float], share: float) -> float | None:
    """The smallest value that at least `share` of all values do not exceed."""
    if not ascending:
        return None
    return ascending[min(int(share * len(ascending)), len(ascending) - 1)]


@dataclass(frozen=True)
class Bar:
    """A load as a stacked bar, and in words."""

    parts: list[drawings.Part]
    words: str


def load_bar(running: int, people: int, behind: int, whole: int = 0) -> Bar:
    """What runs, and what waits of people and behind it, as a bar."""
    counts = {
        ("running", f"{running} running"): running,
        ("people", f"{people} from people waiting"): people,
        ("behind", f"{behind} {'more ' if people else ''}waiting"): behind,
    }
    said = ", ".join(label for (_, label), count in counts.items() if count)
    return Bar(drawings.stack(counts, whole=whole), said or "nothing")
