"""What the pages of re-evaluations show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.forms import Form

from runs_app.features.reevaluation.estimate import DeviceEstimate
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.features.reevaluation.plan import Plan, TaskPlan
from runs_app.features.reevaluation.progress import Progress
from runs_app.models import Device
from tasks_app.models import Task


@dataclass(frozen=True, kw_only=True)
class ReevaluationPage:
    """A choice of kernels with what it comes to; no plan while the choice is wrong."""

    task: Task
    form: Form
    earlier: Iterable[Reevaluation]
    refusal: str
    public: bool
    plan: Plan | None
    estimates: Sequence[DeviceEstimate]


@dataclass(frozen=True, kw_only=True)
class ProgressPage:
    """How far a re-evaluation is; `fragment` if the part that changes is shown alone."""

    task: Task
    row: Reevaluation
    progress: Progress
    fragment: bool


@dataclass(frozen=True, kw_only=True)
class ManyPage:
    """What having the best kernels of many tasks measured again comes to."""

    device: Device
    found: Sequence[TaskPlan]
    changing: Sequence[TaskPlan]
    staying: Sequence[TaskPlan]
    count: int
    estimate: DeviceEstimate
    back: str
