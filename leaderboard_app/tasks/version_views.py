"""The pages about a task's versions: all of them, and what differs between two."""

from __future__ import annotations

import io
from pathlib import PurePosixPath

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from gpu_runner.data.codec import DataError
from leaderboard_app.tasks import page
from runs_app.core.integrity.eligibility import eligible_on
from tasks_app import selectors
from tasks_app.models import TaskVersion
from tasks_app.pages import version_page
from tasks_app.pages.text_diff import Budget
from tasks_app.parameters import takes

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
    version = _found(request, slug, number)
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
    version = _found(request, slug, number)
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


def _found(request: HttpRequest, slug: str, number: int) -> TaskVersion:
    version = selectors.find_version(slug, number, request.user)
    if version is None:
        raise Http404(f"There is no version {number} of a task {slug!r}.")
    return version


def _against(
    version: TaskVersion, seen: list[TaskVersion], asked: str
) -> tuple[TaskVersion | None, str]:
    """The version to compare with, and what is wrong with the one that was asked for."""
    before = version_page.public_before(version)
    if not asked:
        return before, ""
    if not (asked.isdecimal() and asked.isascii() and len(asked) <= _LONGEST_NUMBER):
        return before, "against: must be the number of a version"
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
