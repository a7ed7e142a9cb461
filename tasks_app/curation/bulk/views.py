"""Have many tasks checked at once, or their best kernels evaluated again."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from runs_app.checks.services import request_check
from runs_app.errors import SubmissionError
from runs_app.models import Device, TaskCheck
from runs_app.queue.devices import devices
from tasks_app import selectors
from tasks_app.curation.bulk.page import TaskPlan, best_of_each
from tasks_app.curation.decisions import page as curate_page
from tasks_app.curation.decisions.audit_words import counted
from tasks_app.curation.reevaluation.estimate import estimate_on
from tasks_app.curation.reevaluation.services import reevaluate
from tasks_app.disclosure import admin_of
from tasks_app.errors import CurationError
from tasks_app.models import Task
from tasks_app.people import AuthenticatedRequest

_NAMED = 5  # refusals that a message tells


@login_required
@require_POST
def tasks_check(request: AuthenticatedRequest) -> HttpResponse:
    """Queue a check of each selected task on a device: of the version that its row speaks of."""
    user = admin_of(request, "only admins have many tasks checked")
    try:
        tasks, device = _selected(request)
    except CurationError as error:
        messages.error(request, f"No check: {error.reason}.", extra_tags="bad")
    else:
        checks, refusals = _check(tasks, device, user)
        text = f"{counted(len(checks), 'check')} on {device.name} under way."
        _tell(request, text, refusals, done=bool(checks))
    return _back(request)


@login_required
@never_cache
@require_POST
def tasks_reevaluate(request: AuthenticatedRequest) -> HttpResponse:
    """Show what having the selected tasks' best evaluated again comes to; `confirm` starts it."""
    user = admin_of(request, "only admins have submissions evaluated again")
    try:
        tasks, device = _selected(request)
    except CurationError as error:
        messages.error(request, f"Nothing is evaluated: {error.reason}.", extra_tags="bad")
        return _back(request)
    found = best_of_each(tasks, device)
    if "confirm" not in request.POST:
        return _preview(request, found, device)
    queued, refusals = _start(request, found, user)
    count = counted(sum(queued.values()), "evaluation")
    text = f"{count} of {counted(len(queued), 'task')} queued on {device.name}."
    _tell(request, text, refusals, done=bool(queued))
    return _back(request)


def _selected(request: HttpRequest) -> tuple[list[Task], Device]:
    """The tasks and the device that the form of the page of all tasks names."""
    wanted = request.POST.get("device", "")
    device = devices().filter(slug=wanted).first()
    if device is None:
        raise CurationError("device", "choose a device")
    slugs = request.POST.getlist("task")
    tasks = Task.objects.filter(slug__in=slugs).select_related("current_version").order_by("slug")
    if not tasks:
        raise CurationError("task", "select at least one task")
    return list(tasks), device


def _back(request: HttpRequest) -> HttpResponse:
    return redirect(f"{reverse('curate')}?{_address(request)}")


def _address(request: HttpRequest) -> str:
    """The filters of the page that the form was on."""
    asked = QueryDict(request.POST.get("filters"))
    return curate_page.address(curate_page.read_filters(asked, curate_page.FILTERS))


def _preview(request: HttpRequest, found: list[TaskPlan], device: Device) -> HttpResponse:
    plans = [each.plan for each in found if each.plan is not None]
    context = {
        "device": device,
        "found": found,
        "changing": [each for each in found if each.plan is not None],
        "staying": [each for each in found if each.plan is None],
        "count": sum(plan.count for plan in plans),
        "estimate": estimate_on(device, plans, timezone.now()),
        "filters": _address(request),
    }
    return render(request, "tasks_app/curation/bulk/reevaluate_many.html", context)


def _start(
    request: HttpRequest, found: list[TaskPlan], user: User
) -> tuple[dict[str, int], dict[str, str]]:
    """Evaluations that were queued, and why of other tasks none was, by task.

    Each task is a transaction of its own: what was previewed of it must still be what it comes to.
    """
    queued: dict[str, int] = {}
    refusals = {each.task.slug: each.refusal for each in found if each.plan is None}
    for each in found:
        if each.plan is None:
            continue
        seen = request.POST.get(f"seen-{each.task.slug}", "")
        try:
            reevaluate(choice=each.plan.choice, seen=seen, user=user, now=timezone.now())
        except SubmissionError as error:
            refusals[each.task.slug] = error.reason
        else:
            queued[each.task.slug] = each.plan.count
    return queued, refusals


def _check(
    tasks: Sequence[Task], device: Device, user: User
) -> tuple[list[TaskCheck], dict[str, str]]:
    """The checks that are under way now, and why other tasks have none, by name."""
    checks: list[TaskCheck] = []
    refusals: dict[str, str] = {}
    new = selectors.drafts_of_new(tasks)
    for task in tasks:
        version = new[task.pk].version if task.pk in new else task.current_version
        if version is None:
            refusals[task.slug] = "has no version to check"
            continue
        try:
            checks.append(
                request_check(version=version, device=device, user=user, now=timezone.now())
            )
        except CurationError as error:
            refusals[task.slug] = error.reason
    return checks, refusals


def _tell(request: HttpRequest, text: str, refusals: dict[str, str], *, done: bool) -> None:
    """Say what is under way, and why it is not for other tasks."""
    if refusals:
        told = [f"{name}: {reason}" for name, reason in refusals.items()]
        more = "; and others" if len(told) > _NAMED else ""
        text += f" Not for {len(told)}: {'; '.join(told[:_NAMED])}{more}."
    tell = messages.success if done else messages.warning
    tell(request, text, extra_tags="good" if done else "warn")
