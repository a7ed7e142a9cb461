"""The page on which admins decide about suspicious results, and their button for audits."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from gpu_runner.data import codec
from gpu_runner.data.integrity import Suspicion
from runs_app.core.files import shown_files
from runs_app.core.forms import refusals
from runs_app.core.integrity import page as integrity_page
from runs_app.core.integrity.audits import request_audit
from runs_app.core.integrity.quarantine import decide
from runs_app.core.integrity.selectors import decided_cases, open_cases
from runs_app.core.integrity.tags import decision_words
from runs_app.core.queue.devices import resolve_device
from runs_app.core.work.access import get_submission
from runs_app.models import Evaluation, QuarantineCase
from tasks_app.disclosure import admin_of
from tasks_app.parameters import takes
from tasks_app.people import AuthenticatedRequest
from tasks_app.templatetags.source import ShownFile

_REFUSAL = "only admins can decide on quarantined results"
_OPEN_ROWS = 20
_DECIDED_ROWS = 50


@dataclass(frozen=True, kw_only=True)
class CaseView:
    """A case with its evaluations and the places in the source that tripped checks."""

    case: QuarantineCase
    evaluations: list[Evaluation]
    suspicions: tuple[integrity_page.SuspicionView, ...]
    files: tuple[ShownFile, ...]


@dataclass(frozen=True, kw_only=True)
class QuarantinePage:
    """What waits for a decision, a page of it, and what was decided."""

    page: Page[QuarantineCase]
    open_cases: list[CaseView]
    decided: list[CaseView]


@login_required
@never_cache
@require_safe
@takes("page")
def quarantine(request: AuthenticatedRequest) -> HttpResponse:
    """What waits for a decision, and what was decided, by whom and why."""
    admin_of(request, _REFUSAL)
    page = Paginator(open_cases(), _OPEN_ROWS).get_page(request.GET.get("page"))
    shown = QuarantinePage(
        page=page,
        open_cases=[_view(case) for case in page],
        decided=[_view(case) for case in decided_cases()[:_DECIDED_ROWS]],
    )
    return render(request, "runs_app/integrity/quarantine.html", vars(shown))


@login_required
@require_POST
def quarantine_decide(request: AuthenticatedRequest, case_id: int) -> HttpResponse:
    """Clear or reject a case."""
    user = admin_of(request, _REFUSAL)
    case = get_object_or_404(QuarantineCase, pk=case_id)
    with refusals(request, "Not decided"):
        decision = decide(
            case=case,
            user=user,
            state=request.POST.get("state", ""),
            reason=request.POST.get("reason", ""),
            now=timezone.now(),
        )
        words = f"{decision_words(decision.state)}: {case}. It's in the list of decisions."
        messages.success(request, words)
    return redirect("quarantine")


@login_required
@require_POST
def submission_audit(request: AuthenticatedRequest, submission_id: UUID) -> HttpResponse:
    """Queue an audit of a submission on a device."""
    user = admin_of(request, "only admins can request audits")
    submission = get_submission(submission_id, user)
    with refusals(request, "No audit"):
        device = resolve_device(
            request.POST.get("device", ""), submission.language, submission.solution.code
        )
        request_audit(submission=submission, device=device, user=user, now=timezone.now())
    return redirect(submission)


def _view(case: QuarantineCase) -> CaseView:
    evaluations = list(case.evaluations.all())
    submission = evaluations[0].submission if evaluations else None
    files = shown_files(submission) if submission else ()
    return CaseView(
        case=case,
        evaluations=evaluations,
        suspicions=integrity_page.suspicion_views(
            [codec.decode_stored(Suspicion, each) for each in case.suspicions], files
        ),
        files=files,
    )
