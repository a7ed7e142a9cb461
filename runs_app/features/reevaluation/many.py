"""What the preview of many tasks shows: the best of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runs_app.features.reevaluation.plan import Choice, Plan, plan_of
from runs_app.features.reevaluation.selectors import devices_of, sources_of
from runs_app.models import Device
from tasks_app.models import Task


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
    return [_planned(task, device) for task in tasks]


def _planned(task: Task, device: Device) -> TaskPlan:
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
