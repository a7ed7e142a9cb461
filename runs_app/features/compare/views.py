"""Pages that set submissions, agents or language models side by side."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from leaderboard_app.boards.selectors import devices_with_results
from runs_app.core.work.access import listed_evaluations
from runs_app.features.compare import authors, records, submissions
from runs_app.features.compare.authors import AGENTS, MODELS, Kind
from runs_app.features.compare.choice import MOST, chosen, pinned_key
from runs_app.features.compare.page import (
    AuthorColumn,
    AuthorsPage,
    SubmissionColumn,
    SubmissionsPage,
)
from runs_app.models import Device, Submission
from tasks_app.parameters import address, takes
from tasks_app.people import Viewer
from tasks_app.spreadsheet import FORMS, download

_FOLDER = "compare"
_OFFERED = 30


@never_cache
@require_safe
@takes("submission", "device", "pin", "all", "format")
def compare_submissions(request: HttpRequest) -> HttpResponse:
    """The submissions of the address: `submission` up to five times, `pin`, `device`, `all`."""
    choice = chosen(request.GET, "submission", numbers=True)
    found = submissions.columns(choice.keys, request.user, request.GET.get("device", ""))
    problems = list(choice.problems)
    if len(found) < len(choice.keys):
        problems.append("There is no submission at this address, or it is private.")
    if request.GET.get("format") in FORMS and not problems:
        return download(request.GET["format"], records.of_submissions(found), "comparison")
    oldest = sorted(found, key=lambda column: column.submission.created_at)
    key = pinned_key(request.GET, [column.key for column in oldest])
    pinned = next((column for column in found if column.key == key), None)
    show_all = request.GET.get("all") == "1"
    page = SubmissionsPage(
        problems=problems,
        columns=[_column(request, column, pinned) for column in found],
        offered=_offered(request.user, found) if len(found) < MOST else [],
        show_all=show_all,
        toggle_all=address(request.GET, all=None if show_all else "1"),
        downloads=[(form.upper(), address(request.GET, format=form)) for form in FORMS],
    )
    if pinned is not None:
        told = submissions.facts(found, pinned)
        page = replace(
            page,
            pinned=pinned,
            mixed=len({column.problem for column in found}) > 1,
            lines=submissions.lines(found, pinned),
            facts=[line for line in told if show_all or line.differs],
            by_workload=submissions.by_workload(found, pinned),
            differences=submissions.source_differences(found, pinned),
        )
    status = 400 if problems else 200
    return render(request, f"{_FOLDER}/submissions.html", vars(page), status=status)


@require_safe
@takes("agent", "device", "pin", "all", "format")
def compare_agents(request: HttpRequest) -> HttpResponse:
    """The agents of the address: `agent` up to five times, `pin`, `device`, `all`."""
    return _authors(request, AGENTS)


@require_safe
@takes("model", "device", "pin", "all", "format")
def compare_models(request: HttpRequest) -> HttpResponse:
    """The language models of the address: `model` up to five times, `pin`, `device`, `all`."""
    return _authors(request, MODELS)


def _authors(request: HttpRequest, kind: Kind) -> HttpResponse:
    choice = chosen(request.GET, kind.name)
    known = authors.authors(kind, choice.keys, request.user)
    found = {name: known[name] for name in choice.keys if name in known}
    missing = [name for name in choice.keys if name not in known]
    problems = [*choice.problems, *(f"{kind.name}: there is no {name[:60]!r}." for name in missing)]
    devices = devices_with_results()
    named = request.GET.get("device", "")
    device = named or authors.device_of(kind, found.values())
    if found and not named:
        return redirect(f"{request.path}?{address(request.GET, device=device)}")
    if named and not Device.objects.filter(slug=named).exists():
        problems.append(f"device: there is no result on {device[:60]!r}.")
    standings, rows = authors.standings(kind, found, device)
    if request.GET.get("format") in FORMS and not problems:
        return download(request.GET["format"], records.of_authors(rows), "comparison")
    key = pinned_key(request.GET, list(found))
    pinned = next((each for each in standings if each.name == key), None)
    show_all = request.GET.get("all") == "1"
    shown = [row for row in rows if show_all or row.first is not None]
    page = AuthorsPage(
        what=kind.many,
        kind=kind,
        problems=problems,
        devices=devices,
        device=device,
        columns=[_author_column(request, kind, each, pinned, found) for each in standings],
        rows=shown,
        all_rows=len(rows),
        shared=sum(all(entry for entry in row.entries) for row in rows),
        picture=authors.picture(list(found), shown) if len(found) > 1 else None,
        offered=_names(kind, device, found) if len(found) < MOST else [],
        show_all=show_all,
        toggle_all=address(request.GET, all=None if show_all else "1"),
        downloads=[(form.upper(), address(request.GET, format=form)) for form in FORMS],
    )
    status = 400 if problems else 200
    return render(request, f"{_FOLDER}/authors.html", vars(page), status=status)


def _author_column(
    request: HttpRequest,
    kind: Kind,
    standing: authors.Standing,
    pinned: authors.Standing | None,
    names: Iterable[str],
) -> AuthorColumn:
    others = [name for name in names if name != standing.name]
    return AuthorColumn(
        standing=standing,
        pinned=standing is pinned,
        pin=address(request.GET, pin=standing.name),
        remove=address(request.GET, **{kind.name: others}),
        ratio=authors.shown_ratio(standing, pinned) if pinned else "–",
    )


def _names(kind: Kind, device: str, held: Container[str]) -> list[str]:
    return [name for name in authors.offered(kind, device) if name not in held]


def _column(
    request: HttpRequest, column: submissions.Column, pinned: submissions.Column | None
) -> SubmissionColumn:
    others = [key for key in request.GET.getlist("submission") if key != column.key]
    return SubmissionColumn(
        column=column,
        pinned=column is pinned,
        pin=address(request.GET, pin=column.key),
        remove=address(request.GET, submission=others),
    )


def _offered(user: Viewer, found: list[submissions.Column]) -> list[Submission]:
    """The newest of the same problem, or of all where nothing is chosen."""
    rows = listed_evaluations(user).filter(verdict="CORRECT")
    if found:
        version, direction, device = found[0].problem
        rows = rows.filter(task_version=version, direction=direction)
        rows = rows.filter(device=device) if device else rows
    held = {column.submission.pk for column in found}
    rows = rows.select_related("submission__task_version__task")
    newest = rows.order_by("-finished_at")[:_OFFERED]
    unique = {row.submission_id: row.submission for row in newest}
    return [each for key, each in unique.items() if key not in held]
