"""Pages about tasks."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import PurePosixPath

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from gpu_runner.data.codec import DataError
from gpu_runner.data.verdict import Abi, Direction
from leaderboard_app.boards.selectors import solved_tasks
from leaderboard_app.tasks import page
from leaderboard_app.tasks.page import task_boards
from runs_app.core.integrity.eligibility import eligible_on
from runs_app.core.queue.checks import checks_under_way
from runs_app.core.queue.runners import toolchains
from tasks_app import drawings, selectors
from tasks_app.formats.loader import command_argument
from tasks_app.models import Task, TaskVersion
from tasks_app.pages import soundness_page, task_page, version_page
from tasks_app.pages.task_filter import (
    FILTERS,
    TaskRow,
    chosen,
    nearest,
    options,
    read_filters,
    task_rows,
)
from tasks_app.pages.text_diff import Budget
from tasks_app.parameters import Choice, takes


@require_safe
@vary_on_headers("HX-Request")
@takes("q", *FILTERS)
def task_list(request: HttpRequest) -> HttpResponse:
    """All published tasks, filtered by what stands in the address."""
    rows = task_rows()
    filters = read_filters(request.GET)
    choices = [_choice(name, rows, filters[name]) for name in FILTERS]
    fragment = request.headers.get("HX-Request") == "true"
    found = nearest(chosen(rows, filters), filters["q"])
    solvers = solved_tasks() if found else {}
    shown = page.TaskListPage(
        fragment=fragment,
        rows=found,
        solvers=solvers,
        axis=drawings.axis(solved.rated for solved in solvers.values()),
        total=len(rows),
        filters=filters,
        filtered=any(filters.values()),
        choices=[choice for choice in choices if choice.options or choice.value],
    )
    name = "parts/task_table.html" if fragment else "task_list.html"
    return render(request, f"leaderboard_app/tasks/{name}", vars(shown))


@require_safe
@takes("direction")
def task_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """One task: what it asks for, on which workloads, and who solved it in a `direction`."""
    shown = _detail(request, _found(request, slug))
    return render(request, "leaderboard_app/tasks/task_detail.html", vars(shown))


@require_safe
@takes("device")
def task_soundness(request: HttpRequest, slug: str) -> HttpResponse:
    """What proves the current version of a task sound, with the numbers.

    Of several reports `device` chooses one, by kind.
    """
    version, kind = _found(request, slug), request.GET.get("device", "")
    shown = soundness_page.soundness_page(version.task, version, request.user, kind)
    shown = replace(shown, checks=checks_under_way(timezone.now()))
    return render(request, "leaderboard_app/tasks/task_soundness.html", vars(shown))


def _found(request: HttpRequest, slug: str) -> TaskVersion:
    version = selectors.shown_version(slug, request.user)
    if version is None:
        raise Http404(f"There is no task {slug!r}.")
    return version


def _detail(request: HttpRequest, version: TaskVersion) -> page.TaskPage:
    task, data = version.task, version.data
    files: dict[str, str] = selectors.task_document(version, request.user)["files"]
    here = page.kinds_here()
    is_retired = task.state == Task.State.RETIRED
    direction = request.GET.get("direction", "")
    return page.TaskPage(
        task=task,
        version=version,
        boards=None if is_retired else task_boards(version, direction, request.user),
        results=page.fastest_on(version) if is_retired else (),
        toolchains=toolchains({k.value for workload in data.workloads for k in workload.devices}),
        data=data,
        works=[(d.value, data.work.get(d)) for d in data.directions],
        tables=[(d.value, page.workload_groups(data, d, here)) for d in data.directions],
        tolerance=task_page.tolerance_text(data),
        entrances=task_page.entrances(data),
        modules=[(d.value, task_page.python_starter(data, d)) for d in data.directions],
        buildings=task_page.buildings(data),
        kernels=page.kernels_first_here(task_page.kernel_views(data, files), here),
        references=task_page.reference_files(files),
        soundness=version.report,
        override=version.override,
        refusal=version.briefly_unproven if task.state == Task.State.REVIEW else "",
        first_draft=selectors.first_draft_of(task),
        versions=selectors.seen_versions(task, request.user),
        is_c=data.abi is Abi.C,
        host=request.build_absolute_uri("/").rstrip("/"),
        command=_command(task.slug, data.directions[0]),
    )


def _command(slug: str, direction: Direction) -> str:
    extra = "" if direction is Direction.FORWARD else f" --direction {direction}"
    command = ".venv/bin/python -m gpu_runner evaluate"
    return f"{command} --task {command_argument(slug)} --kernel kernel.cpp --device cpu{extra}"


def _choice(name: str, rows: list[TaskRow], value: str) -> Choice:
    known = tuple((each, each) for each in options(name, rows))
    label = {"abi": "ABI"}.get(name, name.capitalize())
    return Choice(name=name, label=label, options=known, value=value)


_LONGEST_NUMBER = 9  # digits


@require_safe
def task_versions(request: HttpRequest, slug: str) -> HttpResponse:
    """All versions of a task that were public; admins see the others as well."""
    task = selectors.known_task(slug, request.user)
    rows = version_page.rows(task, request.user) if task else []
    if task is None or not rows:
        raise Http404(f"There is no task {slug!r}.")
    shown = selectors.shown_version(slug, request.user)
    shown_page = page.VersionsPage(
        task=task,
        title=(shown or rows[0].version).document["title"],
        rows=rows,
        counts={row.version.pk: eligible_on(row.version).count() for row in rows},
        has_page=shown is not None,
    )
    return render(request, "leaderboard_app/tasks/task_versions.html", vars(shown_page))


@require_safe
@takes("against")
def task_version(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """What one version changed against another, by default the public one before it."""
    version = _version(request, slug, number)
    seen = list(selectors.seen_versions(version.task, request.user))
    asked = request.GET.get("against", "").strip()
    older, problem = _against(version, seen, asked)
    comparison, trouble = _compared(request, older, version)
    in_review = selectors.versions_in_review(version.task)
    is_public = selectors.seen_versions(version.task, None).filter(pk=version.pk).exists()
    shown = page.VersionPage(
        task=version.task,
        version=version,
        older=older,
        others=[other for other in seen if other.pk != version.pk],
        is_current=version.task.current_version_id == version.pk,
        has_page=selectors.shown_version(slug, request.user) is not None,
        is_public=is_public,
        in_review=in_review,
        is_in_review=version.pk in in_review,
        asked=asked[:100],
        problem=problem,
        comparison=comparison,
        trouble=trouble,
        sees_all=not version.hidden_names or request.user.is_staff,
        results=page.fastest_on(version) if is_public else (),
    )
    status = 422 if problem else 200
    return render(request, "leaderboard_app/tasks/task_version.html", vars(shown), status=status)


@require_safe
def version_file(request: HttpRequest, slug: str, number: int, path: str) -> FileResponse:
    """One file of a version, as text."""
    version = _version(request, slug, number)
    try:
        text = version_page.shown_files(version, request.user).get(path)
    except DataError:
        text = None
    if text is None:
        raise Http404(f"There is no file {path!r} in version {number} of {slug!r}.")
    return FileResponse(
        io.BytesIO(text.encode(errors="replace")),
        as_attachment=True,
        filename=PurePosixPath(path).name,
        content_type="text/plain; charset=utf-8",
    )


def _version(request: HttpRequest, slug: str, number: int) -> TaskVersion:
    version = selectors.find_version(slug, number, request.user)
    if version is None:
        raise Http404(f"There is no version {number} of {slug!r}.")
    return version


def _against(
    version: TaskVersion, seen: list[TaskVersion], asked: str
) -> tuple[TaskVersion | None, str]:
    """The version to compare with, and what is wrong with the one that was asked for."""
    before = version_page.public_before(version)
    if not asked:
        return before, ""
    if not (asked.isdecimal() and asked.isascii() and len(asked) <= _LONGEST_NUMBER):
        return before, "against: must be a version number"
    if int(asked) == version_page.NOTHING:
        return None, ""
    other = next((each for each in seen if each.number == int(asked)), None)
    return other or before, "" if other else f"against: there is no version {int(asked)}"


def _compared(
    request: HttpRequest, older: TaskVersion | None, newer: TaskVersion
) -> tuple[version_page.Comparison | None, str]:
    try:
        return version_page.compare(older, newer, request.user, Budget()), ""
    except DataError as error:
        return None, str(error) if request.user.is_staff else ""
