"""What boards can be about, and the evaluations that stand on one or were judged for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import (
    Case,
    Count,
    Exists,
    IntegerField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone

from gpu_runner.data.verdict import DeviceKind, Verdict
from leaderboard_app.boards.groups import Tally
from leaderboard_app.boards.query import By, Choices, Query, parted
from leaderboard_app.boards.ranking import Author, Problem
from runs_app.core.integrity.eligibility import (
    eligible_evaluations,
    eligible_on,
    entered_evaluations,
    judged_evaluations,
    without_replaced,
)
from runs_app.core.integrity.facts import with_fact
from runs_app.core.integrity.ranking import OWNER
from runs_app.core.work.result_state import SURE
from runs_app.models import Agent, Audited, Device, Evaluation, Runner
from runs_app.models.runner import short_name
from runs_app.optimiser.selectors.runs import filtered_runs
from tasks_app.models import TaskVersion
from tasks_app.numbers import counted
from tasks_app.people import Viewer
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


def default_device(task: str = "", reader: Viewer | None = None) -> str:
    """The device whose board is shown where none is named; of no results, the CPU's.

    A device of this site on which the reader has results comes first, then one with a live runner
    and results that didn't come with the tasks. Then it's the device with nonprovisional results
    for the most tasks; ties go to the one with any results for the most tasks, then to one of this
    site. For the board of a `task`, only devices with results for it count.
    """
    standing = eligible_on(OuterRef("current_version")).filter(device=OuterRef(OuterRef("pk")))
    tasks = published_tasks().filter(slug=task) if task else published_tasks()

    def counted(rows: QuerySet[Evaluation]) -> Subquery:
        solved = tasks.filter(Exists(rows)).order_by().values("state")
        return Subquery(solved.annotate(tasks=Count("pk")).values("tasks"))

    entered = standing.exclude(submission__agent__kind=Agent.Kind.SHIPPED)
    author = reader.pk if reader else None
    own = (
        counted(entered.filter(submission__author=author))
        if author
        else Value(None, output_field=IntegerField())
    )
    devices = Device.objects.annotate(tasks=counted(standing)).exclude(tasks=None)
    devices = devices.annotate(own=own, entered=counted(entered))
    here = Case(
        When(imported_from="", own__isnull=False, then=0),
        When(Exists(_live_runners()), imported_from="", entered__isnull=False, then=1),
        default=2,
    )
    by_sure = Coalesce(counted(standing.filter(SURE)), 0).desc()
    ordered = devices.order_by(here, by_sure, "-tasks", "imported_from", "slug")
    return ordered.values_list("slug", flat=True).first() or DeviceKind.CPU.value


def _live_runners() -> QuerySet[Runner]:
    """Those of the query's device that take work."""
    heard = timezone.now() - timedelta(seconds=settings.RUNNER_TIMEOUT_S)
    return Runner.objects.filter(
        device=OuterRef("pk"), state=Runner.State.READY, seen_at__gte=heard
    )


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
        both = [new, *([replace(held, agents=most)] if held else [])]
        solved[task] = max(both, key=lambda each: (-_KINDS.index(each.kind), each.rated or 0.0))
    return solved


_AGENT = ("submission__agent__name", "submission__agent__kind", "submission__agent_id")
_MODEL = ("submission__language_model__name",)


def chosen_tasks(query: Query, tasks: Iterable[BoardTask]) -> list[BoardTask]:
    """The tasks of the selection, contaminated ones too."""
    return [
        task
        for task in tasks
        if query.task in ("", task.slug)
        and query.scenario in ("", task.scenario)
        and query.dtype in ("", task.dtype)
        and (not query.direction or query.direction in task.directions)
    ]


def problems_of(query: Query, tasks: Iterable[BoardTask]) -> tuple[Problem, ...]:
    """The problems that a board is about, solved or not."""
    return tuple(
        Problem(task.slug, direction)
        for task in chosen_tasks(query, tasks)
        if query.counts_all or not task.contaminated
        for direction in task.directions
        if query.direction in ("", direction)
    )


def eligible(query: Query) -> QuerySet[Evaluation]:
    """What stands on the board."""
    return _passed(query, matching(query, eligible_evaluations()))


def elsewhere(query: Query, reader: Viewer) -> list[tuple[str, str]]:
    """A task's results on other devices and all its runs, in words with their addresses."""
    if not query.task:
        return []
    rows = eligible(replace(query, device="")).exclude(device=query.device).order_by()
    results = Counter(slug for slug, *_ in rows.values_list("device", *OWNER).distinct())
    runs = filtered_runs(reader, {"task": query.task}).order_by().values_list("device")
    counted_runs = dict(runs.annotate(count=Count("pk")))
    found = []
    for device in Device.objects.filter(pk__in=results.keys() | counted_runs.keys()):
        if results[device.pk] and query.device:
            words = f"{counted(results[device.pk], 'result')} on {device}"
            found.append((words, f"{reverse('leaderboard')}?{query.address(device=device.pk)}"))
        if device.pk in counted_runs:
            filters = urlencode({"task": query.task, "device": device.pk})
            words = f"{counted(counted_runs[device.pk], 'run')} on {device}"
            found.append((words, f"{reverse('runs')}?{filters}"))
    return found


def judged(query: Query) -> QuerySet[Evaluation]:
    """All that was judged, right or wrong: of each submission what was measured last."""
    return matching(query, without_replaced(judged_evaluations()))


def standing_on(query: Query, version: TaskVersion | OuterRef) -> QuerySet[Evaluation]:
    """What stands on the board of a version that is current, and whose task the query names.

    It asks nothing of the task: with its joins PostgreSQL expects one row, and sorts a board.
    """
    return _passed(query, eligible_on(version).filter(**_wanted(query)))


def matching(query: Query, rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """Those of these rows that the filters leave."""
    wanted = {
        "task_version__task__slug": query.task,
        "task_version__task__scenario": query.scenario,
        "task_version__dtype": query.dtype,
        "direction": query.direction,
    }
    if not query.counts_all:
        rows = rows.filter(task_version__task__contaminated="")
    given = {name: value for name, value in wanted.items() if value}
    return rows.filter(**given, **_wanted(query))


def _wanted(query: Query) -> dict[str, object]:
    """Conditions that say nothing of the problem."""
    wanted: dict[str, object] = {
        "device_id": query.device,
        "submission__agent__kind": query.who,
        "submission__agent__name": query.agent,
        "submission__language_model__name": query.model,
    }
    if query.since:
        wanted["finished_at__gte"] = datetime.combine(query.since, time(), UTC)
    if query.until:
        wanted["finished_at__lt"] = end_of(query.until)
    return {name: value for name, value in wanted.items() if value}


def end_of(day: date) -> datetime:
    """When a day of a query is over, in UTC."""
    return datetime.combine(day, time(), UTC) + timedelta(days=1)


def _passed(query: Query, rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    if query.verified:
        rows = rows.filter(audited=Audited.PASSED)
    rows = with_fact(rows, **query.facts)
    return rows.filter(guest=False) if query.trusted else rows


def tallies(rows: QuerySet[Evaluation], by: By) -> list[Tally]:
    """By name and problem: how many were judged, and how many of these were right.

    Names are language models where the board is by these, else agents.
    """
    names = _MODEL if by is By.MODEL else _AGENT
    keys = (*names, "task_version__task__slug", "direction")
    counted = (
        rows.order_by()
        .values(*keys)
        .annotate(judged=Count("pk"), accepted=Count("pk", filter=Q(verdict=Verdict.CORRECT.value)))
        .values_list(*keys, "judged", "accepted")
    )
    return [
        Tally(
            author=Author("", "", name[0] or "")
            if by is By.MODEL
            else Author("", name[0], "", *name[1:]),
            problem=Problem(task, direction),
            judged=count,
            accepted=accepted,
        )
        for *name, task, direction, count, accepted in counted
    ]
