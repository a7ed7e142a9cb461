"""Questions that the boards ask of the database; nothing here writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery

from gpu_runner.data.verdict import DeviceKind, Verdict
from leaderboard_app.boards.best import RankedEntries, best_of, ranked_entries
from leaderboard_app.boards.query import By, Choices, Query, default_sort
from leaderboard_app.boards.ranking import (
    Author,
    Entry,
    Group,
    Problem,
    Ranked,
    Tally,
    group_entries,
    rank_groups,
)
from runs_app.integrity.eligibility import (
    eligible_evaluations,
    entered_evaluations,
    judged_evaluations,
)
from runs_app.models import Audited, Device, Evaluation, ResultImport
from tasks_app.people import shown_name_of
from tasks_app.selectors import published_tasks

_AUTHOR = ("submitter", "submission__agent__name")
_MODEL = "submission__language_model__name"
_OWNERS = {
    By.SUBMISSION: ("submission__author", "submission__agent"),
    By.AGENT: ("submission__agent",),
    By.MODEL: ("submission__language_model",),
}
"""Columns under which results are put together; the fastest of each problem stands for them."""


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
class Board:
    """A board, ranked: `entries` by submission, else `groups`.

    `contaminated` are the tasks of the selection that are marked so: they are left out, unless
    the query counts all.
    """

    query: Query
    problems: tuple[Problem, ...]
    contaminated: tuple[BoardTask, ...] = ()
    entries: RankedEntries = field(default_factory=RankedEntries)
    groups: tuple[Ranked[Group], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Solved:
    """How a task stands: on the device with the best speedup, and most agents on one device."""

    agents: int
    speedup: float | None
    device: str


def board_tasks() -> list[BoardTask]:
    """The published tasks."""
    rows = published_tasks().values_list(
        "slug",
        "title",
        "scenario",
        "current_version__dtype",
        "current_version__document__directions",
        "contaminated",
    )
    return [
        BoardTask(
            slug=slug,
            title=title,
            scenario=scenario,
            dtype=dtype,
            directions=tuple(words),
            contaminated=contaminated,
        )
        for slug, title, scenario, dtype, words, contaminated in rows
    ]


def choices(tasks: Iterable[BoardTask]) -> Choices:
    """What the filters offer."""
    known = list(tasks)
    return Choices(
        devices=tuple(Device.objects.values_list("slug", flat=True)),
        tasks=tuple(task.slug for task in known),
        scenarios=tuple(sorted({task.scenario for task in known})),
        dtypes=tuple(sorted({task.dtype for task in known})),
        directions=tuple(sorted({word for task in known for word in task.directions})),
    )


def default_device() -> str:
    """The device of the latest ranked result, or the CPU."""
    latest = judged_evaluations().filter(verdict=Verdict.CORRECT).order_by("-finished_at").first()
    return latest.device_id if latest else DeviceKind.CPU.value


def imports_of(device: Device | None) -> list[ResultImport]:
    """The files that brought a device's results from another site; none of our own."""
    if device is None or not device.imported_from:
        return []
    return list(ResultImport.objects.filter(site=device.imported_from)[:5])


def devices_with_results() -> list[Device]:
    """Devices that have at least one ranked correct result, the most recent first."""
    correct = entered_evaluations().filter(verdict=Verdict.CORRECT.value).order_by()
    newest = correct.filter(device=OuterRef("pk")).order_by("-finished_at").values("finished_at")
    devices = Device.objects.annotate(latest=Subquery(newest[:1])).exclude(latest=None)
    return list(devices.order_by("-latest", "slug"))


def problems_of(query: Query, tasks: Iterable[BoardTask]) -> tuple[Problem, ...]:
    """The problems that a board is about, solved or not."""
    return tuple(
        Problem(task.slug, direction)
        for task in _chosen(query, tasks)
        if query.counts_all or not task.contaminated
        for direction in task.directions
        if query.direction in ("", direction)
    )


def _chosen(query: Query, tasks: Iterable[BoardTask]) -> list[BoardTask]:
    return [
        task
        for task in tasks
        if query.task in ("", task.slug)
        and query.scenario in ("", task.scenario)
        and query.dtype in ("", task.dtype)
        and (not query.direction or query.direction in task.directions)
    ]


def board(query: Query, tasks: Sequence[BoardTask]) -> Board:
    """The ranked board for `query`."""
    problems = problems_of(query, tasks)
    marked = tuple(task for task in _chosen(query, tasks) if task.contaminated)
    found = Board(query=query, problems=problems, contaminated=marked)
    rows = _eligible(query)
    if query.by is By.SUBMISSION:
        return replace(found, entries=ranked_entries(rows, _OWNERS[query.by], query.sort))
    groups = group_entries(
        best_of(rows, _OWNERS[query.by]),
        _tallies(_matching(query, judged_evaluations())),
        query.by.owner,
        len(problems),
        query.p,
    )
    return replace(found, groups=tuple(rank_groups(groups, query.sort)))


def top(device: str, task: str = "", limit: int = 5) -> list[Ranked[Entry]]:
    """The first rows of a device's board by submission."""
    query = Query(device=device, task=task, sort=default_sort(By.SUBMISSION, task))
    return ranked_entries(_eligible(query), _OWNERS[By.AGENT], query.sort)[:limit]


def solved_tasks() -> dict[str, Solved]:
    """By task: how many agents solved it, and the best speedup with its device."""
    rows = (
        eligible_evaluations()
        .order_by()
        .values_list("task_version__task__slug", "device__name")
        .annotate(agents=Count("submission__agent", distinct=True), best=Max("speedup_best"))
    )
    solved: dict[str, Solved] = {}
    for task, device, agents, best in rows:
        held = solved.get(task)
        if held is None or (best or 0) > (held.speedup or 0):
            most = max(agents, held.agents if held else 0)
            solved[task] = Solved(agents=most, speedup=best, device=device)
    return solved


def _eligible(query: Query) -> QuerySet[Evaluation]:
    rows = _matching(query, eligible_evaluations())
    return rows.filter(audited=Audited.PASSED) if query.verified else rows


def _matching(query: Query, rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    wanted = {
        "device_id": query.device,
        "task_version__task__slug": query.task,
        "task_version__task__scenario": query.scenario,
        "task_version__dtype": query.dtype,
        "direction": query.direction,
    }
    if not query.counts_all:
        rows = rows.filter(task_version__task__contaminated="")
    return rows.filter(**{name: value for name, value in wanted.items() if value})


def _tallies(rows: QuerySet[Evaluation]) -> list[Tally]:
    keys = (*_AUTHOR, _MODEL, "task_version__task__slug", "direction")
    counted = (
        rows.order_by()
        .annotate(submitter=shown_name_of("submission__author"))
        .values(*keys)
        .annotate(judged=Count("pk"), accepted=Count("pk", filter=Q(verdict=Verdict.CORRECT.value)))
        .values_list(*keys, "judged", "accepted")
    )
    return [
        Tally(
            author=Author(submitter, agent, model or ""),
            problem=Problem(task, direction),
            judged=judged,
            accepted=accepted,
        )
        for submitter, agent, model, task, direction, judged, accepted in counted
    ]
