"""The page of a submission, on which its evaluations are watched."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from gpu_runner.data import codec
from runs_app.core.forms import refusals
from runs_app.core.work.access import (
    find_evaluation,
    get_submission,
    shown_result,
    standing_of,
    visible_evaluations,
)
from runs_app.models import Evaluation, Submission
from runs_app.submitting import card
from runs_app.submitting.identity import identity
from runs_app.submitting.live import live_view
from runs_app.submitting.selectors import differences
from runs_app.submitting.services import cancel, rerun
from runs_app.submitting.submission_page import submission_page
from tasks_app.parameters import takes
from tasks_app.people import AuthenticatedRequest

_PICTURE_S = 300


@never_cache
@require_safe
@takes("evaluation")
def submission_detail(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """One submission with one of its evaluations: what counts, or the one in the address."""
    submission = get_submission(submission_id, request.user)
    evaluations = _evaluations(request, submission)
    chosen = _chosen(request, submission, evaluations)
    live = live_view(chosen, request.user, timezone.now())
    standing = standing_of(evaluations) or chosen
    page = submission_page(request, submission, evaluations, live, standing)
    return render(request, "runs_app/submissions/submission.html", {"page": page})


@never_cache
@require_safe
def short_address(request: HttpRequest, short_submission: str) -> HttpResponse:
    """Go to the submission whose id begins so, as tables and badges show it."""
    submission_id = identity(short_submission, request.user)
    return redirect(get_submission(submission_id, request.user))


@never_cache
@require_safe
@takes("evaluation")
def submission_differences(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """What its source changed against its author's last, and against the leader."""
    submission = get_submission(submission_id, request.user)
    chosen = _chosen(request, submission)
    context = {"submission": submission, "differences": differences(chosen, request.user)}
    return render(request, "runs_app/submissions/parts/differences.html", context)


@require_safe
@takes("evaluation")
def submission_badge(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Its verdict as a small SVG, for a README."""
    submission = get_submission(submission_id, request.user)
    chosen = _chosen(request, submission)
    context = {"badge": card.badge(chosen)}
    answer = render(
        request, "runs_app/submissions/badge.svg", context, content_type="image/svg+xml"
    )
    return _kept(answer, chosen)


@require_safe
@takes("evaluation")
def submission_card(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Its verdict as a PNG, for sites that show what a link leads to."""
    submission = get_submission(submission_id, request.user)
    chosen = _chosen(request, submission)
    return _kept(HttpResponse(card.card(chosen), content_type="image/png"), chosen)


@never_cache
@require_safe
@takes("source")
def evaluation_live(request: HttpRequest, evaluation_id: UUID) -> HttpResponse:
    """The part of the page that changes while an evaluation runs; `source` adds its source."""
    evaluation = _evaluation(request, evaluation_id)
    live = live_view(evaluation, request.user, timezone.now())
    context = {"live": live, "with_source": bool(request.GET.get("source"))}
    return render(request, "runs_app/submissions/parts/live.html", context)


@require_safe
def evaluation_json(request: HttpRequest, evaluation_id: UUID) -> HttpResponse:
    """The whole result as a file, as far as the viewer may see it."""
    evaluation = _evaluation(request, evaluation_id)
    result = shown_result(evaluation, request.user)
    if result is None:
        raise Http404("This evaluation has no result yet.")
    response = JsonResponse(codec.encode(result), json_dumps_params={"indent": 2})
    response["Content-Disposition"] = f'attachment; filename="evaluation-{evaluation}.json"'
    return response


@require_safe
def submission_source(request: HttpRequest, submission_id: UUID) -> HttpResponseBase:
    """The source as a file; several as a zip."""
    submission = get_submission(submission_id, request.user)
    if submission.files:
        return FileResponse(
            _zipped(submission.solution.texts), as_attachment=True, filename=f"{submission}.zip"
        )
    name = f"{submission}{submission.solution.language.suffix}"
    response = HttpResponse(submission.source, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _zipped(texts: Mapping[str, str]) -> BytesIO:
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    packed.seek(0)
    return packed


@login_required
@require_POST
def submission_rerun(request: AuthenticatedRequest, submission_id: UUID) -> HttpResponse:
    """Measure a submission again."""
    submission = get_submission(submission_id, request.user)
    with refusals(request, "Not queued"):
        begun = rerun(
            submission=submission,
            user=request.user,
            mode=request.POST.get("mode", ""),
            device=request.POST.get("device", ""),
            now=timezone.now(),
        )
        return redirect(f"{submission.get_absolute_url()}?evaluation={begun.pk}")
    return redirect(submission)


@login_required
@require_POST
def evaluation_cancel(request: AuthenticatedRequest, evaluation_id: UUID) -> HttpResponse:
    """Take an evaluation back."""
    evaluation = _evaluation(request, evaluation_id)
    with refusals(request, "Not canceled"):
        cancel(evaluation=evaluation, user=request.user, now=timezone.now())
    return redirect(evaluation.submission)


def _evaluations(request: HttpRequest, submission: Submission) -> list[Evaluation]:
    rows = visible_evaluations(request.user).filter(submission=submission)
    return list(rows.order_by("-created_at", "-pk"))


def _chosen(
    request: HttpRequest, submission: Submission, evaluations: list[Evaluation] | None = None
) -> Evaluation:
    """The evaluation in the address, or the one that stands for the submission."""
    known = _evaluations(request, submission) if evaluations is None else evaluations
    wanted = request.GET.get("evaluation", "")
    chosen = next((e for e in known if str(e.pk) == wanted), None) if wanted else standing_of(known)
    if chosen is None:
        raise Http404("This submission has no such evaluation.")
    return chosen


def _kept(answer: HttpResponse, shown: Evaluation) -> HttpResponse:
    """A public picture may be kept for a while; a private one, or without a verdict, by nobody."""
    if shown.submission.private or not shown.is_over:
        patch_cache_control(answer, private=True, no_store=True)
    else:
        patch_cache_control(answer, public=True, max_age=_PICTURE_S)
    return answer


def _evaluation(request: HttpRequest, evaluation_id: UUID) -> Evaluation:
    evaluation = find_evaluation(evaluation_id, request.user)
    if evaluation is None:
        raise Http404("There is no such evaluation, or it is private.")
    return evaluation
