"""Pages that set submissions, agents or language models side by side."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from leaderboard_app.boards.selectors import devices_with_results
from leaderboard_app.boards.tables import ENTRY
from runs_app.core.work.access import listed_evaluations
from runs_app.features.compare import authors, submissions
from runs_app.features.compare.authors import AGENTS, MODELS, AuthorKind, ProblemRow, Standing
from runs_app.features.compare.choice import Choice, Kind, Table, chosen
from runs_app.features.compare.page import AuthorsPage, SubmissionsPage
from runs_app.features.compare.submissions import Column
from runs_app.models import Device, Submission
from runs_app.submitting.page import WorkloadRow
from tasks_app.numbers import counted
from tasks_app.parameters import address, takes
from tasks_app.people import Viewer
from tasks_app.spreadsheet import FORMS, download

_SUBMISSIONS = Kind(
    name="submission", one="submission", many="submissions", repeated=("all", "device")
)
_OFFERED = 30
_CAPTION = (
    "Differences are relative to the pinned submission. Each submission is represented by its "
    "newest correct ranked evaluation or, if it has none, by its newest evaluation."
)


@never_cache
@require_safe
@takes("submission", "device", "pin", "all", "format")
def compare_submissions(request: HttpRequest) -> HttpResponse:
    """The submissions of the address: `submission` up to five times, `pin`, `device`, `all`."""
    choice = chosen(request.GET, _SUBMISSIONS, numbers=True)
    found = submissions.columns(choice.keys, request.user, request.GET.get("device", ""))
    if len(found) < len(choice.keys):
        choice.problems.append("There is no submission at this address, or it is private.")
    if request.GET.get("format") in FORMS and not choice.problems:
        return download(request.GET["format"], of_submissions(found), "comparison")
    oldest = min(found, key=lambda column: column.submission.created_at, default=None)
    pinned = choice.settle({column.key: column for column in found}, oldest.key if oldest else "")
    page = _submissions_page(request.user, choice, found, pinned)
    status = 400 if choice.problems else 200
    return render(request, "compare/submissions.html", vars(page), status=status)


def _submissions_page(
    user: Viewer, choice: Choice, found: list[Column], pinned: Column | None
) -> SubmissionsPage:
    offered = _offered(user, found) if choice.has_room else []
    if pinned is None:
        return SubmissionsPage(choice=choice, offered=offered)
    heads = [choice.head(each.key, each.label, each.address, each.place) for each in found]
    lines = submissions.lines(found, pinned)
    return SubmissionsPage(
        choice=choice,
        offered=offered,
        results=Table("Measure", heads, lines, _CAPTION),
        mixed=len({column.problem for column in found}) > 1,
        pinned=pinned.label,
        facts=choice.texts("Fact", heads, [each.facts for each in found]),
        by_workload=submissions.by_workload(found, pinned),
        differences=submissions.source_differences(found, pinned),
    )


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


def _authors(request: HttpRequest, kind: AuthorKind) -> HttpResponse:
    choice = chosen(request.GET, kind)
    known = authors.authors(kind, choice.keys, request.user)
    found = {name: known[name] for name in choice.keys if name in known}
    missing = [name for name in choice.keys if name not in known]
    choice.problems += (f"{kind.name}: there is no {name[:60]!r}." for name in missing)
    named = request.GET.get("device", "")
    device = named or authors.device_of(kind, found.values())
    if found and not named:
        return redirect(f"{request.path}?{address(request.GET, device=device)}")
    if named and not Device.objects.filter(slug=named).exists():
        choice.problems.append(f"device: there is no result on {device[:60]!r}.")
    standings, rows = authors.standings(kind, found, device)
    if request.GET.get("format") in FORMS and not choice.problems:
        return download(request.GET["format"], of_authors(rows), "comparison")
    choice.settle(standings)
    page = _authors_page(choice, kind, device, standings, rows)
    status = 400 if choice.problems else 200
    return render(request, "compare/authors.html", vars(page), status=status)


def _authors_page(
    choice: Choice,
    kind: AuthorKind,
    device: str,
    found: dict[str, Standing],
    rows: list[ProblemRow],
) -> AuthorsPage:
    names = authors.offered(kind, device) if choice.has_room else []
    shown = [row for row in rows if choice.show_all or row.first is not None]
    heads = [choice.head(name, name, each.address) for name, each in found.items()]
    lines = authors.figures(found, choice.pinned) if found else []
    return AuthorsPage(
        choice=choice,
        offered=[(name, name) for name in names if name not in choice.keys],
        results=Table("Measure", heads, lines, _covers(rows)) if found else None,
        devices=devices_with_results(),
        device=device,
        scores=Table("Task", heads, authors.scores(shown)),
        all_rows=len(rows),
        picture=authors.picture(choice.keys, shown) if len(heads) > 1 else None,
    )


def _covers(rows: Sequence[ProblemRow]) -> str:
    """Which tasks the figures are over."""
    if not rows:
        return "They have no task in common on this device."
    if shared := sum(row.is_shared for row in rows):
        tasks = counted(shared, "task")
        over = f"Based on {tasks} that all of them solved without provisional results"
        return f"{over}. The first and last rows cover more tasks."
    return "There is no task that all of them solved without provisional results."


def _offered(user: Viewer, found: list[Column]) -> list[tuple[str, str]]:
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
    return [(str(key), _words(each)) for key, each in unique.items() if key not in held]


def _words(each: Submission) -> str:
    when = f"{each.created_at:%Y-%m-%d %H:%M}"
    return f"{each} · {each.task_version.task.slug} · {each.agent} · {when}"


_TIMES = ("time_ns", "low_ns", "high_ns")


def of_submissions(columns: Sequence[Column]) -> list[dict[str, object]]:
    """A record for each workload of each submission; times in nanoseconds, None if not timed."""
    return [_workload(column, row) for column in columns for row in column.rows.values()]


def _workload(column: Column, row: WorkloadRow) -> dict[str, object]:
    submission, evaluation = column.submission, column.evaluation
    return {
        "submission_id": column.key,
        "evaluation_id": str(evaluation.pk) if evaluation else None,
        "agent": str(submission.agent),
        "task": submission.task_version.task.slug,
        "version": submission.task_version.number,
        "direction": submission.direction,
        "device": evaluation.device_id if evaluation else None,
        "verdict": (evaluation.verdict or None) if evaluation else None,
        "workload": row.name,
        "hidden": row.hidden,
        **{name: getattr(row.measurement, name, None) for name in _TIMES},
        "floor_ns": row.floor_ns,
    }


def of_authors(rows: Sequence[ProblemRow]) -> list[dict[str, object]]:
    """A record for each author's best result on each problem, as boards show it."""
    return [ENTRY.record(entry) for row in rows for entry in row.entries if entry]
