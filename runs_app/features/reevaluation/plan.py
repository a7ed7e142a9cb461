"""What having the best kernels measured again comes to, and how long it takes, before it begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from statistics import mean
from uuid import UUID

from django.db.models import QuerySet

from gpu_runner.data.verdict import DeviceKind, Direction, Mode, Verdict
from runs_app.core.integrity.eligibility import eligible_on
from runs_app.core.queue.runners import runner_list
from runs_app.core.queue.selectors import why_blocked
from runs_app.core.work.estimate import work_s
from runs_app.features.reevaluation.selectors import (
    Key,
    best_of_agents,
    devices_of,
    key_of,
    sources_of,
    with_names,
)
from runs_app.models import UNDER_WAY, Device, Evaluation, Status, Submission
from tasks_app.models import Task, TaskVersion

_WAITS = "already under way"
_DONE = "already measured there"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What an admin asks for; `target` is the task's current version."""

    source: TaskVersion
    target: TaskVersion
    devices: tuple[Device, ...]

    @property
    def same(self) -> bool:
        """Whether the version is only measured again."""
        return self.source.pk == self.target.pk

    @property
    def words(self) -> str:
        """Where the kernels come from, and where they go."""
        if self.same:
            return f"of version {self.target.number}, measured again"
        return f"of version {self.source.number}, on version {self.target.number}"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A kernel with its ranked evaluation on the source; `left_out` says why it gets none.

    `entry` is the submission on the target that there is already.
    """

    evaluation: Evaluation
    entry: UUID | None = None
    left_out: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that a choice comes to."""

    choice: Choice
    planned: tuple[Planned, ...]

    @property
    def queued(self) -> tuple[Planned, ...]:
        """Those that get an evaluation."""
        return tuple(each for each in self.planned if not each.left_out)

    @property
    def count(self) -> int:
        """Evaluations that are queued."""
        return len(self.queued)

    @property
    def entered(self) -> int:
        """Submissions that are entered on the target; one that is on two devices counts once."""
        new = (each.evaluation.submission for each in self.queued if each.entry is None)
        return len({key_of(submission) for submission in new})

    @property
    def left_out(self) -> list[tuple[str, int]]:
        """Why others get none, and how many."""
        return sorted(Counter(each.left_out for each in self.planned if each.left_out).items())

    @property
    def under_way(self) -> bool:
        """Whether some of it waits or runs."""
        return any(each.left_out == _WAITS for each in self.planned)

    @property
    def seen(self) -> str:
        """What a form sends back, so that nothing else is started than what was looked at."""
        return f"{self.choice.source.number}-{self.choice.target.number}-{self.count}"


def plan_of(choice: Choice) -> Plan:
    """What `choice` comes to now, the best kernel of each device and direction first."""
    slugs = [device.slug for device in choice.devices]
    chosen = best_of_agents(with_names(eligible_on(choice.source).filter(device__in=slugs)))
    there = _Entries(choice.target)
    return Plan(choice=choice, planned=tuple(_planned(choice, row, there) for row in chosen))


class _Entries:
    """What is entered publicly for a version, and what of it was ranked where."""

    def __init__(self, version: TaskVersion) -> None:
        """Read nothing that is not asked for."""
        self._version = version
        self._ranked = Evaluation.objects.filter(task_version=version, mode=Mode.RANKED.value)

    @cached_property
    def by_key(self) -> dict[Key, list[UUID]]:
        """Entries, the oldest first."""
        found: dict[Key, list[UUID]] = {}
        entered = Submission.objects.filter(task_version=self._version, private=False, run=None)
        columns = ("author_id", "agent_id", "digest", "pk")
        for *key, pk in entered.order_by("created_at", "pk").values_list(*columns):
            found.setdefault(Key(*key), []).append(pk)
        return found

    @cached_property
    def under_way(self) -> set[tuple[UUID, str]]:
        """Submissions that wait or run, by device."""
        return _places(self._ranked.filter(status__in=UNDER_WAY))

    @cached_property
    def done(self) -> set[tuple[UUID, str]]:
        """Submissions that have a verdict, by device."""
        ended = self._ranked.filter(status=Status.FINISHED)
        return _places(ended.exclude(verdict=Verdict.SYSTEM_ERROR.value))


def _places(rows: QuerySet[Evaluation]) -> set[tuple[UUID, str]]:
    return set(rows.values_list("submission_id", "device_id"))


def _planned(choice: Choice, row: Evaluation, there: _Entries) -> Planned:
    own = [row.submission_id]
    entries = own if choice.same else there.by_key.get(key_of(row.submission), [])
    places = {(entry, row.device_id) for entry in entries}
    left_out = _refusal(choice.target, row)
    if not left_out and places & there.under_way:
        left_out = _WAITS
    elif not left_out and not choice.same and places & there.done:
        left_out = _DONE
    return Planned(evaluation=row, entry=next(iter(entries), None), left_out=left_out)


def _refusal(target: TaskVersion, row: Evaluation) -> str:
    """Why it cannot be measured on the version; empty if it can be tried."""
    if row.direction not in target.directions:
        return f"version {target.number} has no {row.direction} direction"
    kind, direction = DeviceKind(row.device.kind), Direction(row.direction)
    if not target.data.workloads_for(kind, direction, hidden=False):
        return f"version {target.number} has no {row.direction} workload for {row.device}"
    return ""


@dataclass(frozen=True, kw_only=True)
class TaskPlan:
    """What would be measured of a task; nothing, with no plan, if `refusal` says why."""

    task: Task
    plan: Plan | None = None
    refusal: str = ""


def best_of_each(tasks: Iterable[Task], device: Device) -> list[TaskPlan]:
    """The best of each agent on a device, of each task, on its current version.

    They come from the newest earlier version, or from the current one where no earlier one has any
    left.
    """
    return [_task_plan(task, device) for task in tasks]


def _task_plan(task: Task, device: Device) -> TaskPlan:
    target = task.current_version
    if task.state != Task.State.PUBLISHED or target is None:
        return TaskPlan(task=task, refusal="is not public")
    sources = [version for version in sources_of(task) if device in devices_of([version])]
    reasons: dict[str, None] = {}
    for source in sources:
        plan = plan_of(Choice(source=source, target=target, devices=(device,)))
        if plan.count:
            return TaskPlan(task=task, plan=plan)
        reasons |= dict.fromkeys(reason for reason, _ in plan.left_out)
        if plan.under_way:
            break
    if not sources:
        return TaskPlan(task=task, refusal=f"has no ranked result on {device.name}")
    return TaskPlan(task=task, refusal=f"has nothing to evaluate: {'; '.join(reasons)}")


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
        reason=why_blocked(device, runners),
    )
