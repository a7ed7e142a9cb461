"""Pages on which admins curate tasks: all of them, one of them, and the audit log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from runs_app.core.queue.checks import checks_under_way, failed_checks
from runs_app.core.queue.devices import devices
from runs_app.core.queue.many import back, back_address
from runs_app.features.curation.decisions import page as curate_page
from runs_app.features.curation.decisions.many import (
    Action,
    Bulk,
    Outcome,
    decide_many,
    preview,
    read_bulk,
)
from runs_app.features.curation.decisions.services import (
    clear_contamination,
    label,
    make_public,
    mark_contaminated,
    restore,
    retire,
)
from tasks_app.disclosure import admin_of
from tasks_app.errors import CurationError
from tasks_app.models import Draft, Task
from tasks_app.numbers import counted
from tasks_app.pages import audit_page
from tasks_app.pages.audit_page import audit_lines
from tasks_app.parameters import query_of, read_filters, takes
from tasks_app.people import AuthenticatedRequest

_REFUSAL = "only admins can curate tasks"
_ROWS = 300
_OWN_ENTRIES = 20
_READ_ENTRIES = 400  # of which many may be shown as one
_DIGITS = 9  # of the number of a version

_ACTIONS = {
    Action.PUBLISH: ("Publish", "published"),
    Action.RETIRE: ("Retire", "retired"),
    Action.RESTORE: ("Restore", "restored"),
    Action.CONTAMINATE: ("Mark contaminated", "marked contaminated"),
    Action.CLEAR: ("Remove the contamination mark", "cleared of contamination"),
    Action.DIFFICULTY: ("Set difficulty", "set to the difficulty"),
    Action.ADD_TAG: ("Add tag", "tagged"),
    Action.REMOVE_TAG: ("Remove tag", "stripped of the tag"),
}
_BULK_FIELDS = ("action", "reason", "difficulty", "tag")


@login_required
@never_cache
@require_safe
@vary_on_headers("HX-Request")
@takes(*curate_page.FILTERS, "select", "page")
def curate(request: AuthenticatedRequest) -> HttpResponse:
    """What waits for a decision, and all tasks with what can be done to many of them."""
    admin_of(request, _REFUSAL)
    filters = read_filters(request.GET, curate_page.FILTERS)
    fragment = request.headers.get("HX-Request") == "true"
    shown = replace(_table(request, filters), fragment=fragment)
    if request.GET.get("select") == "all":
        shown = replace(shown, selected={row.task.slug for row in shown.page})
    name = "parts/curate_table.html" if fragment else "curate.html"
    return render(request, f"curation/decisions/{name}", vars(shown))


@login_required
@never_cache
@require_POST
def curate_bulk(request: AuthenticatedRequest) -> HttpResponse:
    """Show what a decision about many tasks would change; with `confirm`, make it."""
    user = admin_of(request, _REFUSAL)
    values = {name: request.POST.get(name, "") for name in _BULK_FIELDS}
    slugs = request.POST.getlist("task")
    asked = QueryDict(urlsplit(back_address(request)).query)
    filters = read_filters(asked, curate_page.FILTERS)
    try:
        bulk = read_bulk(**values)
        tasks = list(Task.objects.filter(slug__in=slugs))
        if not tasks:
            raise CurationError("task", "select at least one task")
    except CurationError as error:
        table = _table(request, filters)
        shown = replace(table, error=error, values=values, selected=set(slugs))
        return render(request, "curation/decisions/curate.html", vars(shown), status=422)
    if "confirm" not in request.POST:
        page = _preview(bulk, preview(bulk, tasks), back_address(request))
        return render(request, "curation/decisions/curate_confirm.html", vars(page))
    outcomes = decide_many(bulk=bulk, tasks=tasks, user=user, now=timezone.now())
    _tell(request, bulk, outcomes)
    return back(request)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def task_curate(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """One task: its state, labels, versions and drafts, and what was done to it."""
    user = admin_of(request, _REFUSAL)
    task = get_object_or_404(Task.objects.select_related("current_version"), slug=slug)
    if request.method != "POST":
        return render(request, "curation/decisions/task_curate.html", vars(_one(task)))
    try:
        words = _decide(request, task, user)
    except CurationError as error:
        shown = replace(_one(task), error=error, values=request.POST)
        return render(request, "curation/decisions/task_curate.html", vars(shown), status=422)
    messages.success(request, words)
    return redirect("task-curate", slug)


def _table(request: HttpRequest, filters: dict[str, str]) -> curate_page.CuratePage:
    rows = curate_page.all_rows()
    page = Paginator(curate_page.chosen(rows, filters), _ROWS).get_page(request.GET.get("page"))
    return curate_page.CuratePage(
        page=page,
        total=len(rows),
        filters=filters,
        address=query_of(filters),
        choices=curate_page.choices(rows, filters),
        waiting=curate_page.waiting(rows),
        actions=[(action.value, words[0]) for action, words in _ACTIONS.items()],
        devices=devices(),
        difficulties=Task.Difficulty.choices,
        checks=checks_under_way(timezone.now()),
        failed=failed_checks(),
    )


def _preview(bulk: Bulk, outcomes: list[Outcome], back: str) -> curate_page.ConfirmPage:
    return curate_page.ConfirmPage(
        bulk=bulk,
        words=_words(bulk),
        back=back,
        outcomes=outcomes,
        changing=[outcome.task for outcome in outcomes if not outcome.refusal],
        staying=[outcome for outcome in outcomes if outcome.refusal],
    )


def _words(bulk: Bulk) -> tuple[str, str]:
    """The action as an order and as what has been done, with its object."""
    order, done = _ACTIONS[bulk.action]
    about = ""
    if bulk.action is Action.DIFFICULTY:
        about = f" “{bulk.difficulty or 'not set'}”"
    elif bulk.action in (Action.ADD_TAG, Action.REMOVE_TAG):
        about = f" “{bulk.tag}”"
    return order + about, done + about


def _tell(request: HttpRequest, bulk: Bulk, outcomes: list[Outcome]) -> None:
    staying = [outcome for outcome in outcomes if outcome.refusal]
    changed = len(outcomes) - len(staying)
    text = f"{counted(changed, 'task')} {_words(bulk)[1]}."
    if staying:
        why = "; ".join(f"{each.task.slug} {each.refusal}" for each in staying[:5])
        more = "; and others" if len(staying) > 5 else ""
        text += f" {len(staying)} left unchanged: {why}{more}."
    tell = messages.success if changed else messages.warning
    tell(request, text)


def _one(task: Task) -> curate_page.TaskCuratePage:
    versions = curate_page.version_rows(task)
    current = next((row for row in versions if row.version.pk == task.current_version_id), None)
    drafts = curate_page.light_drafts(task.drafts.all())
    entries = audit_page.audit_entries({"task": task.slug})[:_READ_ENTRIES]
    return curate_page.TaskCuratePage(
        task=task,
        current=current,
        versions=versions,
        under_way=drafts.filter(state__in=Draft.UNDER_WAY),
        past_drafts=drafts.exclude(state__in=Draft.UNDER_WAY),
        entries=audit_lines(entries, with_files=True)[:_OWN_ENTRIES],
        in_use=task.state in (Task.State.PUBLISHED, Task.State.REVIEW),
        checks=checks_under_way(timezone.now()),
        failed=failed_checks(),
    )


def _decide(request: HttpRequest, task: Task, user: User) -> str:
    """Do what the form says; what has been done, in words."""
    action, reason = request.POST.get("action", ""), request.POST.get("reason", "")
    given: dict[str, Any] = {"task": task, "user": user, "now": timezone.now()}
    if action == Action.RETIRE:
        retire(reason=reason, **given)
        return f"{task.slug} is retired."
    if action == Action.RESTORE:
        state = restore(reason=reason, **given).state
        return f"{task.slug} is {Task.State(state).label.lower()} again."
    if action == Action.CONTAMINATE:
        mark_contaminated(reason=reason, **given)
        return f"{task.slug} is marked contaminated and left out of cross-task figures."
    if action == Action.CLEAR:
        clear_contamination(reason=reason, **given)
        return f"{task.slug} counts again."
    if action == "label":
        tags = request.POST.get("tags", "").replace(",", " ").split()
        label(tags=tags, difficulty=request.POST.get("difficulty", ""), **given)
        return f"The labels of {task.slug} have been saved."
    if action == "make-public":
        return _make_public(request, task, user)
    raise CurationError("action", "choose an action")


def _make_public(request: HttpRequest, task: Task, user: User) -> str:
    number, reason = request.POST.get("version", ""), request.POST.get("reason", "")
    named = number.isdecimal() and len(number) < _DIGITS
    version = task.versions.filter(number=int(number)).first() if named else None
    if version is None:
        raise CurationError("version", "choose a version")
    make_public(
        task=task,
        version=version,
        user=user,
        reason=reason,
        override=reason if "override" in request.POST else "",
        reports=request.POST.get("reports", ""),
        now=timezone.now(),
    )
    return f"Version {version.number} of {task.slug} is public."
