"""Have the best kernels of many tasks evaluated again."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from runs_app.core.errors import SubmissionError
from runs_app.core.queue.many import back, back_address, selected, tell_of
from runs_app.features.reevaluation.estimate import estimate_on
from runs_app.features.reevaluation.many import TaskPlan, best_of_each
from runs_app.features.reevaluation.page import ManyPage
from runs_app.features.reevaluation.services import reevaluate
from runs_app.models import Device
from tasks_app.disclosure import admin_of
from tasks_app.errors import CurationError
from tasks_app.pages.audit_words import counted
from tasks_app.people import AuthenticatedRequest


@login_required
@never_cache
@require_POST
def tasks_reevaluate(request: AuthenticatedRequest) -> HttpResponse:
    """Show what having the selected tasks' best evaluated again comes to; `confirm` starts it."""
    user = admin_of(request, "only admins can have submissions evaluated again")
    try:
        tasks, device = selected(request)
    except CurationError as error:
        messages.error(request, f"Nothing is evaluated: {error.reason}.")
        return back(request)
    found = best_of_each(tasks, device)
    if "confirm" not in request.POST:
        return _preview(request, found, device)
    queued, refusals = _start(request, found, user)
    count = counted(sum(queued.values()), "evaluation")
    text = f"{count} of {counted(len(queued), 'task')} queued on {device.name}."
    tell_of(request, text, refusals, done=bool(queued))
    return back(request)


def _preview(request: HttpRequest, found: list[TaskPlan], device: Device) -> HttpResponse:
    plans = [each.plan for each in found if each.plan is not None]
    page = ManyPage(
        device=device,
        found=found,
        changing=[each for each in found if each.plan is not None],
        staying=[each for each in found if each.plan is None],
        count=sum(plan.count for plan in plans),
        estimate=estimate_on(device, plans, timezone.now()),
        back=back_address(request),
    )
    return render(request, "reevaluation/reevaluate_many.html", vars(page))


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
