"""The page on which admins decide about suspicious results, and their button for audits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from runs_app.errors import SubmissionError
from runs_app.integrity import page as integrity_page
from runs_app.integrity.audits import request_audit
from runs_app.integrity.eligibility import eligibility
from runs_app.integrity.quarantine import decide
from runs_app.integrity.selectors import decided_cases, open_cases, public_suspicions
from runs_app.integrity.tags import decision_words
from runs_app.models import Evaluation, QuarantineCase
from runs_app.queue.find_device import resolve_device
from runs_app.work.access import find_submission
from runs_app.work.board_audit import board_audit
from tasks_app.disclosure import admin_of
from tasks_app.parameters import takes
from tasks_app.people import AuthenticatedRequest, Viewer

_REFUSAL = "only admins decide what is in quarantine"
_OPEN_ROWS = 20
_DECIDED_ROWS = 50


@dataclass(frozen=True, kw_only=True)
class CaseView:
    """A case with its evaluations and the places in the source that tripped checks."""

    case: QuarantineCase
    evaluations: list[Evaluation]
    suspicions: tuple[integrity_page.SuspicionView, ...]
    source: str
    language: str


@login_required
@never_cache
@require_safe
@takes("page")
def quarantine(request: AuthenticatedRequest) -> HttpResponse:
    """What waits for a decision, and what was decided, by whom and why."""
    admin_of(request, _REFUSAL)
    page = Paginator(open_cases(), _OPEN_ROWS).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "open_cases": [_view(case) for case in page],
        "decided": [_view(case) for case in decided_cases()[:_DECIDED_ROWS]],
    }
    return render(request, "runs_app/integrity/quarantine.html", context)


@login_required
@require_POST
def quarantine_decide(request: AuthenticatedRequest, case_id: int) -> HttpResponse:
    """Clear or reject a case."""
    user = admin_of(request, _REFUSAL)
    case = get_object_or_404(QuarantineCase, pk=case_id)
    try:
        decision = decide(
            case=case,
            user=user,
            state=request.POST.get("state", ""),
            reason=request.POST.get("reason", ""),
            now=timezone.now(),
        )
    except SubmissionError as error:
        messages.error(request, f"Not decided: {error.reason}.", extra_tags="bad")
    else:
        words = f"{decision_words(decision.state)}: {case}. It is in the list of decisions."
        messages.success(request, words, extra_tags="good")
    return redirect("quarantine")


@login_required
@require_POST
def submission_audit(request: AuthenticatedRequest, submission_id: UUID) -> HttpResponse:
    """Queue an audit of a submission on a device."""
    user = admin_of(request, _REFUSAL)
    submission = find_submission(submission_id, user)
    if submission is None:
        raise Http404("There is no such submission.")
    try:
        device = resolve_device(request.POST.get("device", ""), submission.language)
        request_audit(submission=submission, device=device, user=user, now=timezone.now())
    except SubmissionError as error:
        messages.error(request, f"No audit: {error.reason}.", extra_tags="bad")
    return redirect(submission)


def evaluation_context(
    evaluation: Evaluation, document: dict[str, Any] | None, user: Viewer
) -> dict[str, Any]:
    """What the page of an evaluation shows of its suspicions, its audit and the outside clock.

    `document` is the result as the viewer, `user`, may see it.
    """
    found = document or {}
    case = evaluation.quarantine_case
    audit = None
    if evaluation.mode in ("ranked", "audit"):
        audit = board_audit(evaluation.submission, evaluation.device_id)
    under_way = bool(audit and audit.evaluation and not audit.evaluation.is_over)
    of_another = audit is not None and audit.submission_id != evaluation.submission_id
    return {
        "suspicions": integrity_page.suspicion_views(
            public_suspicions(evaluation, found), evaluation.submission.source
        ),
        "decisions": list(case.decisions.select_related("decided_by")) if case else [],
        "eligibility": eligibility(evaluation),
        "board_audit": audit,
        "audit_of_another": of_another,
        "may_see_audit": audit is not None
        and (not of_another or find_submission(audit.submission_id, user) is not None),
        "audit_under_way": under_way,
        "audit_report": integrity_page.audit_view(found),
        "outside": integrity_page.outside_rows(found),
        "waits": evaluation.quarantine == "open" or (evaluation.mode == "ranked" and under_way),
    }


def _view(case: QuarantineCase) -> CaseView:
    evaluations = list(case.evaluations.all())
    submission = evaluations[0].submission if evaluations else None
    source = submission.source if submission else ""
    return CaseView(
        case=case,
        evaluations=evaluations,
        suspicions=integrity_page.suspicion_views(case.suspicions, source),
        source=source,
        language=submission.language if submission else "",
    )
