"""What having the best kernels of many tasks evaluated again comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runs_app.models import Device
from tasks_app.curation.reevaluation.plan import Plan, plan_of
from tasks_app.curation.reevaluation.selectors import (
    Choice,
    What,
    devices_with_results,
    versions_with_results,
)
from tasks_app.models import Task, TaskVersion


@dataclass(frozen=True, kw_only=True)
class TaskPlan:
    """What would be evaluated of a task; nothing, with no plan, if `refusal` says why."""

    task: Task
    plan: Plan | None = None
    refusal: str = ""

    @property
    def words(self) -> str:
        """Where its kernels come from, and where they go."""
        if self.plan is None:
            return ""
        source, target = self.plan.choice.source.number, self.plan.choice.target.number
        again = f"version {target}, measured again"
        return again if self.plan.choice.same else f"of version {source}, on version {target}"


def best_of_each(tasks: Iterable[Task], device: Device) -> list[TaskPlan]:
    """The best of each agent on a device, of each task's newest version with results there.

    They go on the current version: where that has results, it is measured again.
    """
    return [_planned(task, device) for task in tasks]


def _planned(task: Task, device: Device) -> TaskPlan:
    target = task.current_version
    if task.state != Task.State.PUBLISHED or target is None:
        return TaskPlan(task=task, refusal="is not public")
    source = _newest(task, device)
    if source is None:
        return TaskPlan(task=task, refusal=f"has no ranked result on {device.name}")
    plan = plan_of(Choice(source=source, target=target, devices=(device,), what=What.BEST, top=1))
    if not plan.count:
        reasons = "; ".join(dict.fromkeys(each.words for each in plan.planned))
        return TaskPlan(task=task, refusal=f"has nothing to evaluate: {reasons or 'no place'}")
    return TaskPlan(task=task, plan=plan)


def _newest(task: Task, device: Device) -> TaskVersion | None:
    versions = (version for version, _ in versions_with_results(task))
    return next((each for each in versions if device in devices_with_results(each)), None)
