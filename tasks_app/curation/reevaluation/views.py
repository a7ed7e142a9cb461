"""The page on which admins have submissions evaluated again on a task's current version."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from runs_app.errors import SubmissionError
from tasks_app.curation.reevaluation.boards import board_plans
from tasks_app.curation.reevaluation.estimate import estimates_of
from tasks_app.curation.reevaluation.forms import ReevaluationForm
from tasks_app.curation.reevaluation.plan import MOST_AT_ONCE, Fate, Plan, plan_of
from tasks_app.curation.reevaluation.progress import acts_of, progress_of
from tasks_app.curation.reevaluation.selectors import changes_between
from tasks_app.curation.reevaluation.services import cancel_reevaluation, reevaluate
from tasks_app.disclosure import admin_of
from tasks_app.models import AuditEntry, Task
from tasks_app.people import AuthenticatedRequest

_REFUSAL = "only admins have submissions evaluated again"
_ACTS_SHOWN = 20
_MANY = 200  # evaluations from which on the page asks less often
_ROWS_SHOWN = 50  # of each table that is asked for again and again


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def task_reevaluate(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Choose and preview, start, or watch what was started."""
    user = admin_of(request, _REFUSAL)
    task = get_object_or_404(Task.objects.select_related("current_version"), slug=slug)
    if request.method == "POST":
        return _start(request, task, user)
    if "act" in request.GET:
        return _progress(request, task)
    form = ReevaluationForm(request.GET, task=task)
    return _choose(request, task, form, status=200 if form.is_valid() else 422)


@login_required
@require_POST
def task_reevaluate_cancel(request: AuthenticatedRequest, slug: str, act_id: int) -> HttpResponse:
    """Take what still waits of a re-evaluation out of the queue."""
    user = admin_of(request, _REFUSAL)
    act = get_object_or_404(acts_of(get_object_or_404(Task, slug=slug)), pk=act_id)
    try:
        count = cancel_reevaluation(act=act, user=user, now=timezone.now())
    except SubmissionError as error:
        messages.error(request, f"Not cancelled: {error.reason}.", extra_tags="bad")
    else:
        words = f"{count} evaluation{'' if count == 1 else 's'} taken out of the queue."
        messages.success(request, words, extra_tags="good")
    return redirect(_address(act))


def _start(request: HttpRequest, task: Task, user: User) -> HttpResponse:
    form = ReevaluationForm(request.POST, task=task)
    if not form.is_valid():
        return _choose(request, task, form, status=422)
    choice = form.choice()
    if request.POST.get("target") != str(choice.target.number):  # another one was previewed
        refusal = f"version {choice.target.number} is the current one by now: look at it first"
        return _choose(request, task, form, status=422, refusal=refusal)
    text = request.POST.get("count", "")
    count = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    try:
        act = reevaluate(choice=choice, count=count, user=user, now=timezone.now())
    except SubmissionError as error:
        task.refresh_from_db()
        fresh = ReevaluationForm(request.POST, task=task)
        return _choose(request, task, fresh, status=422, refusal=error.reason)
    return redirect(_address(act))


def _choose(
    request: HttpRequest, task: Task, form: ReevaluationForm, *, status: int, refusal: str = ""
) -> HttpResponse:
    """The form with the preview of its choice, which is not there while the choice is wrong."""
    context: dict[str, Any] = {
        "task": task,
        "form": form,
        "acts": acts_of(task)[:_ACTS_SHOWN],
        "refusal": refusal,
        "most": MOST_AT_ONCE,
        "public": task.state == Task.State.PUBLISHED,
    }
    if not form.offers_something:
        status = 200
    elif form.is_valid():
        context |= _preview(request, plan_of(form.choice())) | {"fields": form.address()}
    return render(
        request, "tasks_app/curation/reevaluation/reevaluation.html", context, status=status
    )


def _preview(request: HttpRequest, plan: Plan) -> dict[str, Any]:
    choice = plan.choice
    fates = _counts(plan)
    return {
        "plan": plan,
        "choice": choice,
        "estimates": estimates_of(plan, request.user, timezone.now()),
        "boards": board_plans(plan),
        "changes": changes_between(choice.source, choice.target),
        "submissions": fates.get(Fate.NEW, 0),
        "later": fates.get(Fate.LATER, 0),
        "private": sum(each.evaluation.submission.private for each in plan.queued),
        "shipped": sum(plan.shipped.values()),
    }


def _counts(plan: Plan) -> dict[Fate, int]:
    """How many submissions have which fate; one on two devices is entered once."""
    found: dict[Fate, set[object]] = {}
    for each in plan.planned:
        found.setdefault(each.fate, set()).add(each.evaluation.submission_id)
    return {fate: len(ids) for fate, ids in found.items()}


def _progress(request: HttpRequest, task: Task) -> HttpResponse:
    """A re-evaluation that was started; the part that changes is asked for again and again."""
    text = request.GET["act"]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0
    act = acts_of(task).filter(pk=number).first()
    if act is None:
        raise Http404("There is no such re-evaluation of this task.")
    fragment = request.headers.get("HX-Request") == "true"
    name = "parts/reevaluation_progress.html" if fragment else "reevaluation_progress.html"
    whole = bool(request.GET.get("all"))
    progress = progress_of(act, None if whole else _ROWS_SHOWN)
    context = {
        "task": task,
        "progress": progress,
        "act": act,
        "whole": whole,
        "pause_s": 30 if whole else 10 if progress.total > _MANY else 3,
        "fragment": fragment,
    }
    return render(request, f"tasks_app/curation/reevaluation/{name}", context)


def _address(act: AuditEntry) -> str:
    return f"{reverse('task-reevaluate', args=[act.name])}?{urlencode({'act': act.pk})}"
