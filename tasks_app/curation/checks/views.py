"""The part of a draft's page that has it checked and its kernels tried."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from runs_app.checks.selectors import find_check
from runs_app.checks.services import cancel_check, request_check
from runs_app.errors import SubmissionError
from runs_app.models import Device
from runs_app.queue.find_device import resolve_device
from tasks_app.curation.checks.dry_run import dry_run
from tasks_app.curation.checks.tags import findings_context, may_ask, results_context
from tasks_app.curation.drafts.services import snapshot
from tasks_app.errors import CurationError
from tasks_app.models import Draft, TaskVersion
from tasks_app.parameters import takes
from tasks_app.people import AuthenticatedRequest

RESULTS = "findings-results"
"""Id of the element that asks for itself while something is under way."""

_PARTS = (RESULTS, "judgements", "judgement-rows")
_STOP = 286  # htmx takes the answer and asks no more

Ask = Callable[[TaskVersion, Device, datetime], object]
View = Callable[..., HttpResponse]


def signed_in(view: View) -> View:
    """A view for those who are signed in, which does not send htmx to the sign-in page.

    That page would stand in the middle of the draft's, and what is written there would be lost.
    """

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated or request.headers.get("HX-Request") != "true":
            return login_required(view)(request, *args, **kwargs)
        target = request.headers.get("HX-Target", "")
        part = target if target in _PARTS else "findings"
        page = request.htmx.current_url_abs_path or "/"  # type: ignore[attr-defined]
        context = {"part": part, "next": page}
        return render(
            request,
            "tasks_app/curation/checks/parts/findings_signed_out.html",
            context,
            status=_STOP,
        )

    return checked


@signed_in
@never_cache
@require_safe
@takes("said")
def draft_findings(request: AuthenticatedRequest, draft_id: UUID) -> HttpResponse:
    """That part alone, or only its results where these ask for themselves."""
    results_only = request.headers.get("HX-Target") == RESULTS
    known = Draft.objects.select_related("version").filter(pk=draft_id).first()
    if known and known.seen_by(request.user) and not known.open_to(request.user):
        context = {"part": RESULTS if results_only else "findings", "draft": known}
        return render(
            request, "tasks_app/curation/checks/parts/findings_taken.html", context, status=_STOP
        )
    draft, now = find_draft(request, draft_id), timezone.now()
    if results_only:
        context = results_context(draft, request.user, now)
        news = {"say": context["status_key"] != request.GET.get("said", "")}
        return render(
            request, "tasks_app/curation/checks/parts/finding_results.html", context | news
        )
    context = findings_context(draft, request.user, now)
    return render(request, "tasks_app/curation/checks/parts/findings.html", context)


@signed_in
@require_POST
def draft_check(request: AuthenticatedRequest, draft_id: UUID) -> HttpResponse:
    """Have a draft's files checked on a device, as they are now."""
    user = request.user

    def ask(version: TaskVersion, device: Device, now: datetime) -> object:
        return request_check(version=version, device=device, user=user, now=now)

    return _asked(request, draft_id, ask, "Not checked")


@signed_in
@require_POST
def draft_try(request: AuthenticatedRequest, draft_id: UUID) -> HttpResponse:
    """Try the kernels that come with a draft, as its files are now."""
    user, mode = request.user, request.POST.get("mode", "")

    def ask(version: TaskVersion, device: Device, now: datetime) -> object:
        return dry_run(version=version, device=device, user=user, mode=mode, now=now)

    return _asked(request, draft_id, ask, "Not tried")


@signed_in
@require_POST
def check_cancel(request: AuthenticatedRequest, check_id: UUID) -> HttpResponse:
    """Take a check back; the form says on which draft's page it stands."""
    try:
        draft = find_draft(request, UUID(request.POST.get("draft", "")))
    except ValueError:
        raise Http404("There is no such draft.") from None
    check = find_check(check_id, request.user)
    if check is None:
        raise Http404("There is no such check, or it is somebody else's.")
    refusal = None
    try:
        cancel_check(check=check, user=request.user, now=timezone.now())
    except CurationError as error:
        refusal = error
    return _answer(request, draft, refusal, "Not cancelled")


def _asked(request: AuthenticatedRequest, draft_id: UUID, ask: Ask, words: str) -> HttpResponse:
    """Ask for something about the version of a draft's files; stores nothing if it is refused."""
    draft, now = find_draft(request, draft_id), timezone.now()
    refusal: CurationError | SubmissionError | None = None
    try:
        if not may_ask(draft, request.user):
            state = draft.get_state_display().lower()
            raise CurationError("", f"this draft is {state}, so nothing of it is checked or tried")
        with transaction.atomic():
            device = resolve_device(request.POST.get("device", ""))
            ask(snapshot(draft=draft, now=now), device, now)
    except (CurationError, SubmissionError) as error:
        refusal = error
    return _answer(request, draft, refusal, words)


def _answer(
    request: AuthenticatedRequest,
    draft: Draft,
    refusal: CurationError | SubmissionError | None,
    words: str,
) -> HttpResponse:
    """The part of the page for htmx, and the way back to the page for everybody else."""
    if request.headers.get("HX-Request") == "true":
        fresh = find_draft(request, draft.pk)
        context = findings_context(fresh, request.user, timezone.now(), request.POST.dict())
        context |= {"refusal": refusal, "refused": words}
        status = 422 if refusal else 200
        return render(
            request, "tasks_app/curation/checks/parts/findings.html", context, status=status
        )
    if refusal:
        messages.error(request, f"{words}: {refusal}.", extra_tags="bad")
    return redirect(f"{draft.get_absolute_url()}#findings")


def find_draft(request: HttpRequest, draft_id: UUID) -> Draft:
    """The draft, if it is open to who asks; raises `Http404`."""
    draft = Draft.objects.select_related("task", "version__task").filter(pk=draft_id).first()
    if draft is None or not draft.open_to(request.user):
        raise Http404("There is no such draft, or it is somebody else's.")
    return draft
