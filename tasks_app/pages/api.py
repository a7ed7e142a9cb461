"""The API's view of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status

from gpu_runner.data.codec import DataError, encode
from gpu_runner.data.verdict import DeviceKind
from tasks_app import selectors
from tasks_app.api_pages import MOST_LISTED, Fault, link_next
from tasks_app.models import Task, TaskVersion
from tasks_app.pages import soundness_page, version_page
from tasks_app.pages.api_schemas import (
    SoundnessDetail,
    TaskDetail,
    TaskListed,
    TaskSummary,
    VersionDetail,
    VersionSummary,
)
from tasks_app.pages.task_filter import (
    FilterError,
    check_filters,
    chosen,
    distance,
    read_filters,
    task_rows,
)
from tasks_app.pages.text_diff import Budget
from tasks_app.people import Viewer

router = Router(tags=["tasks"])
_FEW = 60  # chosen: a brief task has some 110 bytes, so an agent reads at most 8 KB
_OF_REPORT = ("device", "kind", "created_at", "passed", "refusal", "survivors")
_OF_COMPARISON = ("facts", "workloads", "files", "hidden_differ", "withheld_differ")


class TaskIn(Schema):
    """How much of a task to return."""

    fields: Literal["", "all"] = Field("", description="all: include shipped kernels' sources.")


class TaskFilters(Schema):
    """Which tasks to return; all parameters are optional."""

    q: str = Field("", description="Words in a task's name, title or description.")
    scenario: str = ""
    difficulty: str = Field("", description="easy, medium or hard")
    tag: str = ""
    abi: str = Field("", description="c or torch")
    direction: str = Field("", description="forward or backward")
    dtype: str = ""
    fields: Literal["", "all"] = Field("", description="all: include titles, tags and more.")
    limit: int | None = Field(
        None,
        ge=1,
        le=MOST_LISTED,
        description=f"Default: {_FEW}, or {MOST_LISTED} with fields=all.",
    )
    after: str = Field("", description="Name of the last task you received; see the Link header.")


@router.get(
    "/tasks",
    response={200: list[TaskSummary] | list[TaskListed], 422: Fault},
    summary="All published tasks",
)
def list_tasks(request: HttpRequest, response: HttpResponse, filters: Query[TaskFilters]) -> object:
    """Return matching published tasks, sorted by name; with `q`, the closest names first.

    The Link header points to the next page.
    """
    rows, wanted = task_rows(), read_filters(filters.dict())
    try:
        check_filters(rows, wanted)
    except FilterError as error:
        return Status(422, {"field": error.field, "reason": error.reason})
    titles = {row.task.slug: row.task.title for row in rows}

    def place(slug: str) -> tuple[int, str]:  # as Python compares, not as the database does
        return distance(wanted["q"], slug, titles.get(slug, "")), slug

    fitting = sorted(chosen(rows, wanted), key=lambda row: place(row.task.slug))
    if filters.after:
        fitting = [row for row in fitting if place(row.task.slug) > place(filters.after)]
    shown = fitting[: filters.limit or (MOST_LISTED if filters.fields else _FEW)]
    if len(fitting) > len(shown):
        link_next(request, response, shown[-1].task.slug)
    schema = TaskSummary if filters.fields else TaskListed
    found = (_summary(row.task, row.version, row.outline.directions) for row in shown)
    return [schema.model_validate(each) for each in found]


@router.get("/tasks/{slug}", response=TaskDetail, summary="One task")
def show_task(request: HttpRequest, slug: str, wanted: Query[TaskIn]) -> dict[str, object]:
    """Return one task; only admins see hidden workloads."""
    version = selectors.shown_version(slug, request.user)
    if version is None:
        raise Http404(selectors.no_task(slug))
    document, left_out = _document(version, request.user, wanted.fields)
    task, override = version.task, version.override
    return {
        **_summary(task, version, version.directions),
        "digest": version.digest,
        "state": task.state,
        "soundness": version.report,
        "unseen": version.unseen,
        "override": override.reason if override else "",
        "document": document,
        "left_out": left_out,
    }


@router.get(
    "/tasks/{slug}/soundness", response=SoundnessDetail, summary="A task's soundness report"
)
def show_soundness(
    request: HttpRequest, slug: str, kind: DeviceKind | None = None
) -> dict[str, object]:
    """Return filters, wrong kernels and honest kernels; only admins see hidden workloads. Without
    `kind`, you get the deciding report: the newest one that counts against the task or, if there is
    none, the newest one.
    """
    version = selectors.shown_version(slug, request.user)
    found = version.reports.all() if version else ()
    soundness = next((each for each in found if kind in (None, each.kind)), None)
    if version is None:
        raise Http404(selectors.no_task(slug))
    if soundness is None:
        where = f" on {kind} devices" if kind else ""
        raise Http404(f"the task {slug!r} has no soundness report{where}")
    report = soundness_page.report_for(soundness, request.user)
    return {
        "task": slug,
        "version": soundness.version.number,
        "digest": soundness.version.digest,
        **{name: getattr(soundness, name) for name in _OF_REPORT},
        **encode(report),
    }


@router.get(
    "/tasks/{slug}/versions", response=list[VersionSummary], summary="All versions of a task"
)
def list_versions(
    request: HttpRequest,
    response: HttpResponse,
    slug: str,
    limit: int = Query(20, ge=1, le=MOST_LISTED),  # type: ignore[type-arg]
    after: int | None = Query(  # type: ignore[type-arg]
        None, ge=1, lt=2**31, description="Number of the last version you received; see Link."
    ),
) -> list[dict[str, object]]:
    """Return the versions that were public, newest first, including those of retired tasks."""
    task = selectors.known_task(slug, request.user)
    rows = version_page.rows(task, request.user) if task else []
    if not rows:
        raise Http404(selectors.no_task(slug))
    older = [row for row in rows if after is None or row.version.number < after]
    if len(older) > limit:
        link_next(request, response, older[limit - 1].version.number)
    return [
        {
            "number": row.version.number,
            "digest": row.version.digest,
            "current": row.is_current,
            "published_at": row.version.published_at,
            "created_at": row.version.created_at,
            "changes": row.comparison.summary if row.comparison else "",
            "url": reverse("task-version", args=[slug, row.version.number]),
        }
        for row in older[:limit]
    ]


@router.get(
    "/tasks/{slug}/versions/{number}", response=VersionDetail, summary="What a version changed"
)
def show_version(
    request: HttpRequest,
    slug: str,
    number: int,
    against: int | None = Query(  # type: ignore[type-arg]
        None,
        ge=0,
        lt=2**31,
        description="The version to compare with; 0 for none. Default: the previous public one.",
    ),
    fields: Literal["", "all"] = Query(  # type: ignore[type-arg]
        "", description="all: include shipped kernels' sources."
    ),
) -> dict[str, object]:
    """Return a version, and how it differs from another one."""
    version = _version(slug, number, request.user)
    older = version_page.public_before(version)
    if against is not None:
        older = _version(slug, against, request.user) if against else None
    try:
        comparison = version_page.compare(older, version, request.user, Budget())
    except DataError:
        raise Http404("one of these versions can't be shown") from None
    document, left_out = _document(version, request.user, fields)
    return {
        "task": slug,
        "number": number,
        "digest": version.digest,
        "published_at": version.published_at,
        "created_at": version.created_at,
        "against": older.number if older else None,
        **{name: getattr(comparison, name) for name in _OF_COMPARISON},
        "document": document,
        "left_out": left_out,
    }


def _document(
    version: TaskVersion, user: Viewer, fields: str
) -> tuple[dict[str, object], list[str]]:
    """The task as `user` may see it, and what is left out of it unless `fields` asks for all."""
    held = selectors.task_document(version, user)
    has = held["directions"]
    workloads = [
        {**each, "directions": [name for name in each["directions"] if name in has]}
        for each in held["workloads"]
    ]
    files: dict[str, str] = held["files"]
    sources = set() if fields else {each["path"] for each in held["kernels"]}
    kept = {path: text for path, text in files.items() if path not in sources}
    left_out = [f"document.files: {path}" for path in files if path not in kept]
    return {**held, "workloads": workloads, "files": kept}, left_out


def _version(slug: str, number: int, user: Viewer) -> TaskVersion:
    version = selectors.find_version(slug, number, user)
    if version is None:
        known = selectors.known_task(slug, user)
        raise Http404(f"{slug} has no version {number}" if known else selectors.no_task(slug))
    return version


def _summary(task: Task, version: TaskVersion, directions: Sequence[str]) -> dict[str, object]:
    return {
        "name": task.slug,
        "title": task.title,
        "scenario": task.scenario,
        "abi": version.abi,
        "dtype": version.dtype,
        "directions": list(directions),
        "version": version.number,
        "url": task.get_absolute_url(),
        "tags": task.tags,
        "difficulty": task.difficulty,
        "contaminated": task.contaminated,
    }
