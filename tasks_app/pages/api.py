"""The API's view of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
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
from tasks_app.pages.task_filter import (
    FilterError,
    check_filters,
    chosen,
    read_filters,
    task_rows,
)
from tasks_app.pages.text_diff import Budget
from tasks_app.people import Viewer

router = Router(tags=["tasks"])
_FEW = 60  # chosen: a brief task has some 110 bytes, so an agent reads at most 8 KB
_OF_REPORT = ("device", "kind", "created_at", "passed", "refusal", "survivors")
_OF_COMPARISON = ("facts", "workloads", "files", "hidden_differ", "withheld_differ")


class TaskListed(Schema):
    """A task in the list."""

    name: str = Field(examples=["softmax"])
    abi: str = Field(examples=["c"])
    dtype: str = Field(examples=["float32"])
    directions: list[str] = Field(examples=[["forward"]])
    difficulty: str = Field(description="easy, medium or hard; empty if not set.")


class TaskSummary(TaskListed):
    """A task in the list, with `fields=all`."""

    title: str = Field(examples=["Row-wise softmax"])
    scenario: str = Field(examples=["llm"])
    version: int = Field(examples=[1])
    url: str = Field(examples=["/tasks/softmax/"])
    tags: list[str] = Field(examples=[["attention", "reduction"]])
    contaminated: str = Field(description="Why it's left out of aggregates; empty if it isn't.")


class SoundnessOut(Schema):
    """What became of wrong kernels made from the reference, and of the task's filters."""

    passed: bool
    mutants: int
    survivors: list[str] = Field(description="Wrong kernels that pass the task.")
    filters: int = Field(description="0: the report has no filters, so it proves nothing.")
    flagged: list[str] = Field(description="Filters that flag the task.")
    refusal: str = Field(description="Why the version is not sound; empty if it is.")
    device: str = Field(examples=["cpu"])
    kind: str = Field(examples=["cpu"], description="Of the device; each kind has its own report.")


class FilterOut(Schema):
    """What a filter found in one direction."""

    name: str = Field(examples=["input impact: weight"])
    direction: str
    workload: str
    value: float | str | None = Field(description="Null if unknown.")
    limit: str = Field(examples=["at most 0.9"])
    passed: bool | None = Field(description="Null if unknown.")
    text: str


class TriedKernelOut(Schema):
    """A kernel made from the reference, on the workload that says most."""

    name: str = Field(examples=["half the reduction"])
    direction: str
    workload: str
    scaled: float | str | None = Field(
        description="Largest error over what is allowed; inf and nan are strings."
    )


class MutantOut(TriedKernelOut):
    """A wrong kernel."""

    state: str = Field(
        description="failed; survived; equivalent: the same as the reference on every workload; or"
        " untried: the same wherever its shapes fit, which isn't everywhere."
    )


class HonestOut(TriedKernelOut):
    """A right kernel."""

    reason: str = Field(default="", description="Where it is off; empty if it is right.")


class UnlistedOut(Schema):
    """How much of one direction a brief report counts and does not list."""

    failed: dict[str, int] = Field(description="Wrong kernels that fail, by workload.")
    passed: int = Field(description="Filters that passed.")
    right: int = Field(description="Honest kernels that are right.")


class SoundnessDetail(Schema):
    """A report of a task's current version, with the keys that the command writes."""

    task: str
    version: int
    digest: str
    device: str = Field(examples=["cpu"])
    kind: str = Field(examples=["cpu"], description="Of the device; each kind has its own report.")
    created_at: datetime = Field(description="When the site got it.")
    passed: bool
    refusal: str = Field(description="Why the version is not sound; empty if it is.")
    survivors: list[str]
    mutants: list[MutantOut]
    honest: list[HonestOut] = Field(description="Right kernels; a reason means that it is off.")
    filters: list[FilterOut]
    unlisted: dict[str, UnlistedOut] = Field(
        description="What a brief report leaves out in "
        "each direction because nothing is wrong with "
        "it."
        " Reports that come with kbench are brief; those of a site's runners list everything."
    )


class TaskDetail(TaskSummary):
    """A task with everything that an author of a kernel needs."""

    digest: str = Field(description="SHA-256 of the version; scores attach to it.")
    state: str = Field(examples=["published"])
    soundness: SoundnessOut | None = Field(
        description=(
            "If there are several reports, the one that decides. None if nobody has proven it."
        )
    )
    unseen: list[str] = Field(description="Kinds of devices with workloads that no report covers.")
    override: str = Field(description="Why it was published without a proof; usually empty.")
    document: dict[str, object] = Field(
        description="The task: signature, workloads, tolerance, work formula, reference source."
    )
    left_out: list[str] = Field(
        examples=[["document.files: kernels/good.cpp"]],
        description="Sources of shipped kernels that `document.files` lacks; fields=all has them.",
    )


class VersionSummary(Schema):
    """A version of a task; admins see those that were never public as well."""

    number: int = Field(examples=[2])
    digest: str = Field(description="SHA-256 of the version; scores attach to it.")
    current: bool = Field(description="Whether results on it are ranked, while the task is public.")
    published_at: datetime | None = Field(description="Null if it was never public.")
    created_at: datetime
    changes: str = Field(
        description="What changed since the previous public version; empty: not compared.",
        examples=["1 file changed, +2 −1 lines; 1 workload new: n8192"],
    )
    url: str = Field(examples=["/tasks/softmax/versions/2/"])


class FactChangeOut(Schema):
    """A fact about the task, or a workload, in both versions; empty where one lacks it."""

    name: str = Field(examples=["Tolerance"])
    before: str
    after: str


class FileChangeOut(Schema):
    """A file that differs."""

    path: str = Field(examples=["task.toml"])
    state: str = Field(description="new, gone or changed.")
    added: int = Field(alias="diff.added", description="Lines.")
    removed: int = Field(alias="diff.removed", description="Lines.")
    diff: str | None = Field(
        alias="diff.unified", description="Unified diff without its header; null: too large."
    )


class VersionDetail(Schema):
    """A version, and what differs from another."""

    task: str = Field(examples=["softmax"])
    number: int
    digest: str
    published_at: datetime | None
    created_at: datetime
    against: int | None = Field(description="The other version; null: all of it is new.")
    facts: list[FactChangeOut]
    workloads: list[FactChangeOut]
    files: list[FileChangeOut] = Field(
        description="The task's files; only admins see hidden workloads."
    )
    hidden_differ: bool = Field(description="Hidden workloads differ, and are not shown here.")
    withheld_differ: bool = Field(description="Files that could list hidden workloads differ.")
    document: dict[str, object] = Field(description="The task, as under /tasks/{slug}.")
    left_out: list[str] = Field(description="As under /tasks/{slug}.")


class TaskIn(Schema):
    """How much of a task is asked for."""

    fields: Literal["", "all"] = Field("", description="all: also the shipped kernels' sources.")


class TaskFilters(Schema):
    """Which tasks are asked for; every parameter may be left out."""

    q: str = Field("", description="Words in its name, title or description.")
    scenario: str = ""
    difficulty: str = Field("", description="easy, medium or hard")
    tag: str = ""
    abi: str = Field("", description="c or torch")
    direction: str = Field("", description="forward or backward")
    dtype: str = ""
    fields: Literal["", "all"] = Field("", description="all: also titles, tags and more.")
    limit: int | None = Field(
        None,
        ge=1,
        le=MOST_LISTED,
        description=f"If left out: {_FEW}, or {MOST_LISTED} with fields=all.",
    )
    after: str = Field("", description="Name of the last one that you have; see the header Link.")


@router.get(
    "/tasks",
    response={200: list[TaskSummary] | list[TaskListed], 422: Fault},
    summary="All published tasks",
)
def list_tasks(request: HttpRequest, response: HttpResponse, filters: Query[TaskFilters]) -> object:
    """Answer with the published tasks that fit, by name; the header Link has the next page."""
    rows, wanted = task_rows(), read_filters(filters.dict())
    try:
        check_filters(rows, wanted)
    except FilterError as error:
        return Status(422, {"field": error.field, "reason": error.reason})
    fitting = [row for row in chosen(rows, wanted) if row.task.slug > filters.after]
    fitting.sort(key=lambda row: row.task.slug)  # as Python compares, not as the database does
    shown = fitting[: filters.limit or (MOST_LISTED if filters.fields else _FEW)]
    if len(fitting) > len(shown):
        link_next(request, response, shown[-1].task.slug)
    schema = TaskSummary if filters.fields else TaskListed
    found = (_summary(row.task, row.version, row.outline.directions) for row in shown)
    return [schema.model_validate(each) for each in found]


@router.get("/tasks/{slug}", response=TaskDetail, summary="One task")
def show_task(request: HttpRequest, slug: str, wanted: Query[TaskIn]) -> dict[str, object]:
    """Answer with one task; hidden workloads are shown to admins only."""
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


@router.get("/tasks/{slug}/soundness", response=SoundnessDetail, summary="What proves a task sound")
def show_soundness(
    request: HttpRequest, slug: str, kind: DeviceKind | None = None
) -> dict[str, object]:
    """Answer with filters, wrong and honest kernels; hidden workloads are shown to admins only.

    Without a kind of device, with the report that decides: the newest that speaks against the
    task, or the newest.
    """
    version = selectors.shown_version(slug, request.user)
    found = version.reports.all() if version else ()
    soundness = next((each for each in found if kind in (None, each.kind)), None)
    if version is None:
        raise Http404(selectors.no_task(slug))
    if soundness is None:
        where = f" on {kind} devices" if kind else ""
        raise Http404(f"there is no soundness report of a task {slug!r}{where}")
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
        None, ge=1, lt=2**31, description="Number of the last one that you have; see Link."
    ),
) -> list[dict[str, object]]:
    """Answer with the versions that were public, newest first; retired tasks have them too."""
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
        description="The version to compare with; 0: none. Default: the previous public one.",
    ),
    fields: Literal["", "all"] = Query(  # type: ignore[type-arg]
        "", description="all: also the shipped kernels' sources."
    ),
) -> dict[str, object]:
    """Answer with a version and its differences to another."""
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
