"""Pages on which a kernel is entered, and on which its evaluation is watched."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpu_runner.data.verdict import Mode
from runs_app.baselines.selectors import awaited_baselines
from runs_app.errors import SubmissionError
from runs_app.integrity.selectors import may_stop
from runs_app.integrity.views import evaluation_context
from runs_app.models import Evaluation, Status, Submission
from runs_app.queue.events import events as stored_events
from runs_app.queue.selectors import queue_overview, wait_of_people, waiting_reason
from runs_app.submissions import page as evaluation_page
from runs_app.submissions import profile_page
from runs_app.submissions.forms import MODES, SubmissionForm
from runs_app.submissions.quota import quota
from runs_app.submissions.services import cancel, rerun
from runs_app.submissions.services import submit as submit_kernel
from runs_app.work.access import (
    author_names,
    find_evaluation,
    find_submission,
    public_reason,
    result_document,
    visible_evaluations,
)
from runs_app.work.estimate import estimates
from tasks_app.disclosure import sees_hidden
from tasks_app.models import TaskVersion
from tasks_app.people import AuthenticatedRequest, Viewer
from tasks_app.selectors import evaluable_tasks, find_task, shown_version


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def submit(request: HttpRequest) -> HttpResponse:
    """Show the form, or enter what it holds; an error is said beside its field."""
    if request.method != "POST":
        names = ("task", "device", "direction", "mode")
        initial = {name: request.GET[name] for name in names if name in request.GET}
        return _submit_page(request, SubmissionForm(initial=initial, user=request.user))
    if not request.user.is_authenticated:
        return redirect_to_login(reverse("submit"))
    form = SubmissionForm(request.POST, request.FILES, user=request.user)
    submission = _enter(request.user, form) if form.is_valid() else None
    if submission is None:
        form.keep_upload()
        return _submit_page(request, form, status=422)
    return redirect(submission)


def _enter(user: User, form: SubmissionForm) -> Submission | None:
    """The stored submission, or None with the reason on the form."""
    values = form.cleaned_data
    task = find_task(values["task"], user)
    by_agent = values["written_by"] == "agent"
    if task is None or task.current_version is None:
        form.add_refusal("task", "this task takes no submissions any more")
        return None
    try:
        return submit_kernel(
            user=user,
            task_version=task.current_version,
            source=values["source"],
            device=values["device"],
            direction=values["direction"] or "forward",
            mode=values["mode"],
            agent=values["agent"] if by_agent else "",
            language_model=values["language_model"] if by_agent else "",
            private=values["private"],
            now=timezone.now(),
        )
    except SubmissionError as error:
        form.add_refusal(error.field, error.reason)
        return None


def _submit_page(request: HttpRequest, form: SubmissionForm, status: int = 200) -> HttpResponse:
    now = timezone.now()
    user = request.user
    tasks = list(evaluable_tasks(user))
    agents, language_models = author_names(user)
    queues = queue_overview(user, now)
    context = {
        "form": form,
        "modes": [(mode.value, label, text) for mode, label, text in MODES],
        "chosen_mode": form["mode"].value(),
        "written_by": form["written_by"].value(),
        "queues": queues,
        "expected": {
            queue.device.slug: {
                "modes": estimates(queue.device.slug),
                "before": wait_of_people(queue.device.slug),
            }
            for queue in queues
        },
        "quota": quota(user, now) if user.is_authenticated else None,
        "agents": agents,
        "language_models": language_models,
        "task_facts": {task.slug: _task_facts(task) for task in tasks},
        "host": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "runs_app/submissions/submit.html", context, status=status)


def _task_facts(task: Any) -> dict[str, Any]:
    """What the form's script needs to know of a task."""
    document = task.current_version.document
    return {
        "abi": task.current_version.abi,
        "signature": document.get("signature", ""),
        "directions": document.get("directions") or ["forward"],
        "url": task.get_absolute_url(),
    }


@never_cache
@require_safe
def submission_detail(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """One submission with one of its evaluations: the newest, or the one in the address."""
    submission = _submission(request, submission_id)
    evaluations = list(
        visible_evaluations(request.user).filter(submission=submission).order_by("-created_at")
    )
    wanted = request.GET.get("evaluation", "")
    usual = [e for e in evaluations if wanted or e.mode != Mode.AUDIT]  # nobody asked for audits
    chosen = next((e for e in usual if not wanted or str(e.pk) == wanted), None)
    if chosen is None:
        raise Http404("This submission has no such evaluation.")
    context = _live_context(request, chosen) | {
        "submission": submission,
        "evaluations": evaluations,
        **_way_to_task(submission.task_version, request.user),
    }
    return render(request, "runs_app/submissions/submission.html", context)


@never_cache
@require_safe
def evaluation_live(request: HttpRequest, evaluation_id: UUID) -> HttpResponse:
    """The part of the page that changes while an evaluation runs."""
    evaluation = _evaluation(request, evaluation_id)
    context = _live_context(request, evaluation) | {"submission": evaluation.submission}
    return render(request, "runs_app/submissions/parts/live.html", context)


@require_safe
def evaluation_json(request: HttpRequest, evaluation_id: UUID) -> HttpResponse:
    """The whole result as a file, as far as the viewer may see it."""
    evaluation = _evaluation(request, evaluation_id)
    document = result_document(evaluation, request.user)
    if document is None:
        raise Http404("This evaluation has no result yet.")
    response = JsonResponse(document, json_dumps_params={"indent": 2})
    response["Content-Disposition"] = f'attachment; filename="evaluation-{evaluation}.json"'
    return response


@require_safe
def submission_source(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """The source as a file."""
    submission = _submission(request, submission_id)
    name = f"{submission}{submission.solution.language.suffix}"
    response = HttpResponse(submission.source, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@login_required
@require_POST
def submission_rerun(request: AuthenticatedRequest, submission_id: UUID) -> HttpResponse:
    """Measure a submission again."""
    submission = _submission(request, submission_id)
    try:
        rerun(
            submission=submission,
            user=request.user,
            mode=request.POST.get("mode", ""),
            device=request.POST.get("device", ""),
            now=timezone.now(),
        )
    except SubmissionError as error:
        messages.error(request, f"Not queued: {error.reason}.", extra_tags="bad")
    return redirect(submission)


@login_required
@require_POST
def evaluation_cancel(request: AuthenticatedRequest, evaluation_id: UUID) -> HttpResponse:
    """Take an evaluation back."""
    evaluation = _evaluation(request, evaluation_id)
    try:
        cancel(evaluation=evaluation, user=request.user, now=timezone.now())
    except SubmissionError as error:
        messages.error(request, f"Not cancelled: {error.reason}.", extra_tags="bad")
    return redirect(evaluation.submission)


def _live_context(request: HttpRequest, evaluation: Evaluation) -> dict[str, Any]:
    now = timezone.now()
    user = request.user
    document = result_document(evaluation, user)
    events = stored_events(evaluation)
    rows = evaluation_page.workload_rows(document) if document else []
    mine = user.is_authenticated and (
        user.pk == evaluation.submission.author_id or bool(getattr(user, "is_staff", False))
    )
    ended_at = evaluation.finished_at or now
    return evaluation_context(evaluation, document, user) | {
        "evaluation": evaluation,
        "document": document,
        "stages": evaluation_page.stage_rows(
            evaluation.mode, events, evaluation.attempt, document, is_over=evaluation.is_over
        ),
        "queue_state": _queue_state(evaluation),
        "last_seq": events[-1]["seq"] if events else 0,
        "reason": public_reason(evaluation, user),
        "awaited": awaited_baselines(evaluation, document) if document else "",
        "waiting_reason": waiting_reason(evaluation, now),
        "waited_s": ((evaluation.started_at or ended_at) - evaluation.queued_at).total_seconds(),
        "took_s": (ended_at - evaluation.started_at).total_seconds()
        if evaluation.started_at
        else None,
        "rows": rows,
        "baselines": evaluation_page.baseline_names(rows),
        "slow_baseline": evaluation_page.slow_baseline_sentence(rows),
        "threads": evaluation_page.threads_sentence(document) if document else "",
        "limits": evaluation_page.limit_sentences(document) if document else [],
        "environment": evaluation_page.environment_rows(document) if document else [],
        "profile": profile_page.profile_view(document) if document else None,
        "is_mine": mine,
        "may_cancel": mine and may_stop(evaluation, user),
        "is_admin": sees_hidden(user),
    }


def _way_to_task(version: TaskVersion, user: Viewer) -> dict[str, Any]:
    """Whether the task has a page for `user`, whether it takes submissions, and a draft of it.

    The draft is the one in which a version that was never public is written, if `user` may open it.
    """
    drafts = version.drafts.defer("files") if version.published_at is None else ()
    return {
        "task_has_page": shown_version(version.task.slug, user) is not None,
        "task_is_open": find_task(version.task.slug, user) is not None,
        "draft": next((draft for draft in drafts if draft.open_to(user)), None),
    }


def _queue_state(evaluation: Evaluation) -> str:
    """How the wait for a runner ended, or that it goes on, in the words of stages."""
    if evaluation.status == Status.QUEUED:
        return "running"
    never_began = evaluation.is_over and evaluation.started_at is None
    return "cancelled" if never_began else "done"


def _submission(request: HttpRequest, submission_id: UUID) -> Submission:
    submission = find_submission(submission_id, request.user)
    if submission is None:
        raise Http404("There is no such submission, or it is private.")
    return submission


def _evaluation(request: HttpRequest, evaluation_id: UUID) -> Evaluation:
    evaluation = find_evaluation(evaluation_id, request.user)
    if evaluation is None:
        raise Http404("There is no such evaluation, or it is private.")
    return evaluation
