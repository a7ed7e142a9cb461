"""The page of a submission, on which its evaluations are watched."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from gpu_runner.data.verdict import Mode
from runs_app.errors import SubmissionError
from runs_app.models import Evaluation, Submission
from runs_app.submissions.live import live_context
from runs_app.submissions.services import cancel, rerun
from runs_app.work.access import (
    find_evaluation,
    find_submission,
    result_document,
    visible_evaluations,
)
from tasks_app.models import TaskVersion
from tasks_app.people import AuthenticatedRequest, Viewer
from tasks_app.selectors import find_task, shown_version


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
    context = live_context(chosen, request.user, timezone.now()) | {
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
    context = live_context(evaluation, request.user, timezone.now()) | {
        "submission": evaluation.submission
    }
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
