"""What boards can be about: tasks, devices, and the choices of filters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.db.models import Count, Exists, Max, OuterRef, Subquery
from django.db.models.functions import Coalesce

from gpu_runner.data.verdict import DeviceKind, Verdict
from leaderboard_app.boards.query import Choices, parted
from runs_app.core.integrity.eligibility import (
    eligible_evaluations,
    eligible_on,
    entered_evaluations,
)
from runs_app.core.work.result_state import SURE
from runs_app.models import Agent, Device
from runs_app.models.runner import short_name
from tasks_app.selectors import outlines, published_tasks

_PROVISIONAL = "provisional"
_KINDS = ("", "listed", _PROVISIONAL)
_UNKNOWN = (_PROVISIONAL, None)


@dataclass(frozen=True, kw_only=True)
class BoardTask:
    """A published task, as far as boards look at it."""

    slug: str
    title: str
    scenario: str
    dtype: str
    directions: tuple[str, ...]
    contaminated: str  # why it counts in no figure over tasks; empty if it does


@dataclass(frozen=True, kw_only=True)
class Solved:
    """How a task stands: on the device with the best result, and most agents on one device.

    `rated` is a score or, without one, a speedup on listed sizes; `kind` says if it is `listed`,
    or even `provisional`.
    """

    agents: int
    rated: float | None
    kind: str
    device: str

    @property
    def is_sure(self) -> bool:
        """Whether it may have a color."""
        return self.kind != _PROVISIONAL

    @property
    def short_device(self) -> str:
        """The device's name in short."""
        return short_name(self.device)


def board_tasks() -> list[BoardTask]:
    """The published tasks."""
    found = published_tasks().values_list(
        "slug",
        "title",
        "scenario",
        "current_version__dtype",
        "current_version__digest",
        "contaminated",
    )
    rows = list(found)
    known = outlines(row[4] for row in rows)
    return [
        BoardTask(
            slug=slug,
            title=title,
            scenario=scenario,
            dtype=dtype,
            directions=known[digest].directions,
            contaminated=contaminated,
        )
        for slug, title, scenario, dtype, digest, contaminated in rows
    ]


def choices(tasks: Iterable[BoardTask]) -> Choices:
    """What the filters offer."""
    known = list(tasks)
    return Choices(
        devices=tuple(Device.objects.values_list("slug", flat=True)),
        tasks={task.slug: parted(task.directions) for task in known},
        scenarios=tuple(sorted({task.scenario for task in known})),
        dtypes=tuple(sorted({task.dtype for task in known})),
        directions=tuple(sorted({word for task in known for word in task.directions})),
        kinds=tuple(Agent.Kind.values),
    )


def default_device(task: str = "") -> str:
    """The device with results for the most tasks, or the CPU; of equals, one of this site.

    For the board of a `task`, one with results for it.
    """
    standing = eligible_on(OuterRef("current_version")).filter(device=OuterRef(OuterRef("pk")))
    tasks = published_tasks().filter(slug=task) if task else published_tasks()
    solved = tasks.filter(Exists(standing)).order_by().values("state")
    counted = Subquery(solved.annotate(tasks=Count("pk")).values("tasks"))
    devices = Device.objects.annotate(tasks=counted).exclude(tasks=None)
    found = devices.order_by("-tasks", "imported_from", "slug").values_list("slug", flat=True)
    return found.first() or DeviceKind.CPU.value


def devices_with_results() -> list[Device]:
    """Devices that have at least one ranked correct result, the most recent first."""
    correct = entered_evaluations().filter(verdict=Verdict.CORRECT.value).order_by()
    newest = correct.filter(device=OuterRef("pk")).order_by("-finished_at").values("finished_at")
    devices = Device.objects.annotate(latest=Subquery(newest[:1])).exclude(latest=None)
    return list(devices.order_by("-latest", "slug"))


def solved_tasks() -> dict[str, Solved]:
    """By task: how many agents solved it, and the best score with its device.

    Without a score, it is the best speedup on listed sizes, and a provisional one comes last.
    """
    rows = eligible_evaluations().order_by().values_list("task_version__task__slug", "device__name")
    counted = rows.annotate(
        agents=Count("submission__agent", distinct=True),
        scored=Max("score", filter=SURE),
        listed=Max("speedup_best", filter=SURE),
        provisional=Max(Coalesce("score", "speedup_best")),
    )
    solved: dict[str, Solved] = {}
    for task, device, agents, *values in counted:
        kind, best = next((pair for pair in zip(_KINDS, values, strict=True) if pair[1]), _UNKNOWN)
        held = solved.get(task)
        most = max(agents, held.agents if held else 0)
        new = Solved(agents=most, rated=best, kind=kind, device=device)
        solved[task] = max(new, replace(held, agents=most), key=_merit) if held else new
    return solved


def _merit(solved: Solved) -> tuple[int, float]:
    return -_KINDS.index(solved.kind), solved.rated or 0.0
