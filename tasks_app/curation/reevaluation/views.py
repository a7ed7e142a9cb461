"""The pages on which admins have kernels measured again on a task's current version."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from runs_app.errors import SubmissionError
from tasks_app.curation.reevaluation.estimate import estimates_of
from tasks_app.curation.reevaluation.forms import ReevaluationForm
from tasks_app.curation.reevaluation.plan import plan_of
from tasks_app.curation.reevaluation.progress import progress_of
from tasks_app.curation.reevaluation.selectors import reevaluations_of
from tasks_app.curation.reevaluation.services import cancel_reevaluation, reevaluate
from tasks_app.disclosure import admin_of
from tasks_app.models import Task
from tasks_app.parameters import takes
from tasks_app.people import AuthenticatedRequest

_REFUSAL = "only admins have submissions evaluated again"
_SHOWN = 20  # earlier ones on the page


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@takes("version", "device", "act", "all")
def task_reevaluate(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Show what the choice in the address comes to; a POST starts it if it still does."""
    user = admin_of(request, _REFUSAL)
    task = get_object_or_404(Task.objects.select_related("current_version"), slug=slug)
    earlier = request.GET.get("act", "")  # where such a page stood until version 0.1.0
    if earlier.isascii() and earlier.isdigit():
        return redirect("reevaluation", slug, int(earlier))
    if request.method != "POST":
        return _preview(request, task)
    form = ReevaluationForm(request.POST, task=task)
    if not form.is_valid():
        return _preview(request, task)
    seen = request.POST.get("seen", "")
    try:
        row = reevaluate(choice=form.choice(), seen=seen, user=user, now=timezone.now())
    except SubmissionError as error:
        task.refresh_from_db()
        return _preview(request, task, error.reason)
    return redirect("reevaluation", slug, row.pk)


@login_required
@never_cache
@require_safe
def task_reevaluation(request: AuthenticatedRequest, slug: str, number: int) -> HttpResponse:
    """How far one is; its part that changes is asked for again and again."""
    admin_of(request, _REFUSAL)
    task = get_object_or_404(Task, slug=slug)
    row = get_object_or_404(reevaluations_of(task), pk=number)
    fragment = request.headers.get("HX-Request") == "true"
    name = "parts/reevaluation_progress.html" if fragment else "reevaluation_progress.html"
    context = {"task": task, "row": row, "progress": progress_of(row), "fragment": fragment}
    return render(request, f"tasks_app/curation/reevaluation/{name}", context)


@login_required
@require_POST
def task_reevaluate_cancel(request: AuthenticatedRequest, slug: str, number: int) -> HttpResponse:
    """Take what still waits of a re-evaluation out of the queue."""
    user = admin_of(request, _REFUSAL)
    row = get_object_or_404(reevaluations_of(get_object_or_404(Task, slug=slug)), pk=number)
    try:
        count = cancel_reevaluation(reevaluation=row, user=user, now=timezone.now())
    except SubmissionError as error:
        messages.error(request, f"Not cancelled: {error.reason}.", extra_tags="bad")
    else:
        words = f"{count} evaluation{'' if count == 1 else 's'} taken out of the queue."
        messages.success(request, words, extra_tags="good")
    return redirect("reevaluation", slug, number)


def _preview(request: HttpRequest, task: Task, refusal: str = "") -> HttpResponse:
    """The form with what its choice comes to, which is not there while the choice is wrong."""
    form = ReevaluationForm(request.POST if request.method == "POST" else request.GET, task=task)
    context: dict[str, Any] = {
        "task": task,
        "form": form,
        "earlier": reevaluations_of(task)[:_SHOWN],
        "refusal": refusal,
        "public": task.state == Task.State.PUBLISHED,
    }
    wrong = form.offers_something and not form.is_valid()
    if form.offers_something and not wrong:
        plan = plan_of(form.choice())
        context |= {"plan": plan, "choice": plan.choice}
        context |= {"estimates": estimates_of(plan, timezone.now())}
    status = 422 if wrong or refusal else 200
    return render(
        request, "tasks_app/curation/reevaluation/reevaluation.html", context, status=status
    )
