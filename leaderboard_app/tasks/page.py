"""What a task's page puts together of the task, its boards and this site."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.db.models import QuerySet

from gpu_runner.data.task import Task as TaskData
from gpu_runner.data.task import Work
from gpu_runner.data.verdict import Direction
from leaderboard_app.boards import selectors
from leaderboard_app.boards.best import entries_of
from leaderboard_app.boards.board import top
from leaderboard_app.boards.headline import Headline, leading
from leaderboard_app.boards.query import Query, parted
from leaderboard_app.boards.ranking import Entry
from leaderboard_app.boards.selectors import Solved
from leaderboard_app.boards.tables import BRIEF, OF_VERSION
from runs_app.core.integrity.eligibility import BOARD_ORDER, eligible_on
from runs_app.core.integrity.ranking import Ranked
from runs_app.core.queue.devices import devices
from runs_app.core.queue.runners import Toolchain
from runs_app.models import Device
from runs_app.submitting.remarks import likenesses
from tasks_app import drawings
from tasks_app.columns import Table
from tasks_app.models import Draft, Override, Soundness, Task, TaskVersion
from tasks_app.pages.task_filter import TaskRow
from tasks_app.pages.task_page import (
    Building,
    Entrance,
    KernelView,
    WorkloadRow,
    hidden_counts,
    workload_rows,
)
from tasks_app.pages.version_page import Comparison, VersionRow
from tasks_app.parameters import Choice
from tasks_app.people import Viewer

_NAMES = {"cpu": "CPUs", "cuda": "CUDA GPUs"}
_KINDS = {"cpp": "cpu", "cuda": "cuda"}
_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class WorkloadGroup:
    """Workloads for the same kinds of device; `is_here` if this site has a runner of one."""

    name: str
    is_here: bool
    rows: Sequence[WorkloadRow]
    hidden: int


@dataclass(frozen=True, kw_only=True)
class TaskListPage:
    """The tasks that fit the filters; `fragment` if the table alone is shown."""

    fragment: bool
    rows: Sequence[TaskRow]
    solvers: Mapping[str, Solved]  # by task
    axis: drawings.Axis  # holds the best results of all tasks
    total: int
    filters: Mapping[str, str]
    filtered: bool
    choices: Sequence[Choice]


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """The best results on one version for a device and a direction."""

    device: Device
    direction: str
    rows: Sequence[Entry]
    columns = OF_VERSION


@dataclass(frozen=True, kw_only=True)
class TaskPage:
    """A version of a task; what has directions stands in pairs with them."""

    task: Task
    version: TaskVersion
    boards: TaskBoards | None  # none of a retired task
    results: Sequence[ResultTable]  # of a retired task
    toolchains: Sequence[Toolchain]
    data: TaskData
    works: Sequence[tuple[str, Work | None]]
    tables: Sequence[tuple[str, list[WorkloadGroup]]]
    tolerance: str
    entrances: Sequence[Entrance]
    modules: Sequence[tuple[str, str]]
    buildings: Sequence[Building]
    kernels: Sequence[KernelView]
    references: Sequence[tuple[str, str]]
    soundness: Soundness | None
    override: Override | None
    refusal: str
    first_draft: Draft | None
    versions: QuerySet[TaskVersion]
    is_c: bool
    host: str
    command: str


@dataclass(frozen=True, kw_only=True)
class VersionsPage:
    """All versions of a task that one may see; `title` is that of the one with a page."""

    task: Task
    title: str
    rows: Sequence[VersionRow]
    counts: Mapping[int, int]  # of results that count, by id of the version
    has_page: bool


@dataclass(frozen=True, kw_only=True)
class VersionPage:
    """A version against an `older` one; `asked` is the one that the address names.

    `problem` is what is wrong with that, `trouble` why the two can't be compared.
    """

    task: Task
    version: TaskVersion
    older: TaskVersion | None
    others: Sequence[TaskVersion]
    is_current: bool
    has_page: bool
    is_public: bool
    in_review: set[int]
    is_in_review: bool
    asked: str
    problem: str
    comparison: Comparison | None
    trouble: str
    sees_all: bool
    results: Sequence[ResultTable]  # of a public version


def fastest_on(version: TaskVersion) -> list[ResultTable]:
    """The best results on a version, by device and direction, even if its boards are closed."""
    rows = eligible_on(version)
    problems = rows.order_by("device", "direction").values_list("device", "direction").distinct()
    tables = []
    for slug, direction in problems:
        found = rows.filter(device=slug, direction=direction).order_by(*BOARD_ORDER)
        device, entries = Device.objects.get(slug=slug), entries_of(found[:_SHOWN])
        tables.append(ResultTable(device=device, direction=direction, rows=entries))
    return tables


def kinds_here() -> set[str]:
    """Kinds of the devices for which this site has or had a runner."""
    known = devices().filter(runners__isnull=False)
    return set(known.order_by().values_list("kind", flat=True).distinct())


def workload_groups(
    data: TaskData, direction: Direction, here: Collection[str]
) -> list[WorkloadGroup]:
    """By kinds of device, those that this site can measure first.

    Hidden workloads of kinds that have no listed one count in each group of these kinds.
    """
    hidden = hidden_counts(data, direction)
    by_kinds: dict[tuple[str, ...], list[WorkloadRow]] = {kinds: [] for kinds in hidden}
    for row in workload_rows(data, direction):
        by_kinds.setdefault(row.devices, []).append(row)
    groups = [
        WorkloadGroup(
            name=" and ".join(_NAMES.get(kind, kind) for kind in kinds),
            is_here=not here or bool(set(kinds) & set(here)),
            rows=tuple(held),
            hidden=hidden[kinds]
            + sum(n for k, n in hidden.items() if not by_kinds[k] and set(kinds) < set(k)),
        )
        for kinds, held in by_kinds.items()
        if held
    ]
    return sorted(groups, key=lambda group: not group.is_here)


def kernels_first_here(kernels: Iterable[KernelView], here: Collection[str]) -> list[KernelView]:
    """The kernels that this site can measure first."""
    return sorted(kernels, key=lambda kernel: _KINDS.get(kernel.language, "") not in here)


_ROWS = 5  # chosen: the page leads to the whole board


@dataclass(frozen=True, kw_only=True)
class TaskBoards:
    """The first rows on each device, a leader, and what sources are like.

    The leader is that of the first device where it's final, or else of the first.

    `query` names which of the task's `directions` they are of, if there are several.
    """

    tables: list[tuple[Device, str, list[Ranked[Entry]]]]  # with the whole board's query string
    directions: Sequence[tuple[str, str]]  # with their query strings on the task's page
    leading: Headline | None
    likeness: Mapping[str, str]
    elsewhere: Sequence[tuple[str, str]]
    query: Query
    columns: Table = BRIEF


def task_boards(version: TaskVersion, direction: str, reader: Viewer) -> TaskBoards:
    """The boards of a task by its current version; devices without a result are left out."""
    directions = parted([each.value for each in version.data.directions])
    chosen = direction if direction in directions else next(iter(directions), "")
    query = Query(device="", task=version.task.slug, direction=chosen)
    boards = [
        (device, here.address(), top(here, _ROWS))
        for device in selectors.devices_with_results()
        for here in [replace(query, device=device.slug)]
    ]
    tables = [each for each in boards if each[2]]
    firsts = sorted((rows for *_, rows in tables), key=lambda rows: not rows[0].row.is_final)
    shown = [ranked.row.submission_id for _, _, rows in tables for ranked in rows]
    return TaskBoards(
        tables=tables,
        directions=[(each, urlencode({"direction": each})) for each in directions],
        leading=leading(firsts[0]) if firsts else None,
        likeness=likenesses(version, shown),
        elsewhere=selectors.elsewhere(query, reader),
        query=query,
    )
