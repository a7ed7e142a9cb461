"""The pages on which admins have kernels measured again on a task's current version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from runs_app.core.errors import SubmissionError
from runs_app.core.forms import refusals
from runs_app.core.queue.many import back, back_address, selected, tell_of
from runs_app.features.reevaluation.forms import ReevaluationForm
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.features.reevaluation.plan import (
    DeviceEstimate,
    Plan,
    TaskPlan,
    best_of_each,
    estimate_on,
    estimates_of,
    plan_of,
)
from runs_app.features.reevaluation.progress import Progress, progress_of
from runs_app.features.reevaluation.selectors import reevaluations_of
from runs_app.features.reevaluation.services import cancel_reevaluation, reevaluate
from runs_app.models import Device
from tasks_app.disclosure import admin_of
from tasks_app.errors import CurationError
from tasks_app.models import Task
from tasks_app.numbers import counted
from tasks_app.parameters import takes
from tasks_app.people import AuthenticatedRequest


@dataclass(frozen=True, kw_only=True)
class ReevaluationPage:
    """A choice of kernels with what it comes to; no plan while the choice is wrong."""

    task: Task
    form: Form
    earlier: Iterable[Reevaluation]
    refusal: str
    public: bool
    plan: Plan | None
    estimates: Sequence[DeviceEstimate]


@dataclass(frozen=True, kw_only=True)
class ProgressPage:
    """How far a re-evaluation is; `fragment` if the part that changes is shown alone."""

    task: Task
    row: Reevaluation
    progress: Progress
    fragment: bool


@dataclass(frozen=True, kw_only=True)
class ManyPage:
    """What having the best kernels of many tasks measured again comes to."""

    device: Device
    found: Sequence[TaskPlan]
    changing: Sequence[TaskPlan]
    staying: Sequence[TaskPlan]
    count: int
    estimate: DeviceEstimate
    back: str


_REFUSAL = "only admins can have submissions evaluated again"
_SHOWN = 20  # earlier ones on the page


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@takes("version", "device", "all")
def task_reevaluate(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Show what the choice in the address comes to; a POST starts it if it still does."""
    user = admin_of(request, _REFUSAL)
    task = get_object_or_404(Task.objects.select_related("current_version"), slug=slug)
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
    page = ProgressPage(task=task, row=row, progress=progress_of(row), fragment=fragment)
    return render(request, f"reevaluation/{name}", vars(page))


@login_required
@require_POST
def task_reevaluate_cancel(request: AuthenticatedRequest, slug: str, number: int) -> HttpResponse:
    """Take what still waits of a re-evaluation out of the queue."""
    user = admin_of(request, _REFUSAL)
    row = get_object_or_404(reevaluations_of(get_object_or_404(Task, slug=slug)), pk=number)
    with refusals(request, "Not canceled"):
        count = cancel_reevaluation(reevaluation=row, user=user, now=timezone.now())
        messages.success(request, f"{counted(count, 'evaluation')} taken out of the queue.")
    return redirect("reevaluation", slug, number)


def _preview(request: HttpRequest, task: Task, refusal: str = "") -> HttpResponse:
    """The form with what its choice comes to, which is not there while the choice is wrong."""
    form = ReevaluationForm(request.POST if request.method == "POST" else request.GET, task=task)
    wrong = form.offers_something and not form.is_valid()
    plan = plan_of(form.choice()) if form.offers_something and not wrong else None
    page = ReevaluationPage(
        task=task,
        form=form,
        earlier=reevaluations_of(task)[:_SHOWN],
        refusal=refusal,
        public=task.state == Task.State.PUBLISHED,
        plan=plan,
        estimates=estimates_of(plan, timezone.now()) if plan else [],
    )
    status = 422 if wrong or refusal else 200
    return render(request, "reevaluation/reevaluation.html", vars(page), status=status)


@login_required
@never_cache
@require_POST
def tasks_reevaluate(request: AuthenticatedRequest) -> HttpResponse:
    """Show what having the selected tasks' best evaluated again comes to; `confirm` starts it."""
    user = admin_of(request, "only admins can have submissions evaluated again")
    try:
        tasks, device = selected(request)
    except CurationError as error:
        messages.error(request, f"Nothing was queued: {error.reason}.")
        return back(request)
    found = best_of_each(tasks, device)
    if "confirm" not in request.POST:
        return _preview_many(request, found, device)
    queued, refusals = _start(request, found, user)
    count = counted(sum(queued.values()), "evaluation")
    text = f"{count} of {counted(len(queued), 'task')} queued on {device.name}."
    tell_of(request, text, refusals, done=bool(queued))
    return back(request)


def _preview_many(request: HttpRequest, found: list[TaskPlan], device: Device) -> HttpResponse:
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
