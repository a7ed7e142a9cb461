"""The part of a task's or a draft's page with what language models say of it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from runs_app.core.errors import SubmissionError
from runs_app.features.advice.page import judgements_part, rows_part
from runs_app.features.advice.services import JudgeRequest, request_judgement
from tasks_app import selectors
from tasks_app.errors import CurationError
from tasks_app.models import Draft, TaskVersion
from tasks_app.people import AuthenticatedRequest, signed_in
from tasks_app.publishing.snapshots import snapshot


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def version_judgements(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """What was said of a version; a POST of an admin asks a language model about it."""
    version = selectors.find_version(slug, number, request.user)
    if version is None:
        raise Http404(f"There is no version {number} of {slug!r}.")
    if request.method != "POST":
        return render(request, "advice/parts/judgement_rows.html", vars(rows_part(version)))
    return _asked(request, version)


@signed_in("judgements", "judgement-rows")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def draft_judgements(request: AuthenticatedRequest, draft_id: UUID) -> HttpResponse:
    """What was said of a draft; a POST of an admin asks about its files as they are now."""
    draft = selectors.open_draft(draft_id, request.user)
    if request.method != "POST":
        return render(request, "advice/parts/judgement_rows.html", vars(rows_part(draft)))
    return _asked(request, draft)


def _asked(request: HttpRequest, about: TaskVersion | Draft) -> HttpResponse:
    """Ask, storing nothing if it is refused; the part for htmx, and a way back for all others."""
    refusal: CurationError | SubmissionError | None = None
    try:
        if not isinstance(request.user, User):
            raise CurationError("", "sign in as an admin to ask a language model")
        with transaction.atomic():
            _ask(about, _wanted(request), request.user)
    except (CurationError, SubmissionError) as error:
        refusal = error
    if request.headers.get("HX-Request") == "true":
        fresh = selectors.open_draft(about.pk, request.user) if isinstance(about, Draft) else about
        part = judgements_part(fresh, request.user, request.POST.dict())
        part = replace(part, refusal=refusal)
        status = 422 if refusal else 200
        return render(request, "advice/parts/judgements.html", vars(part), status=status)
    if refusal:
        messages.error(request, f"Not asked: {refusal}.")
    if isinstance(about, Draft):
        return redirect(f"{about.get_absolute_url()}#judgements")
    if selectors.shown_version(about.task.slug, request.user) != about:
        return redirect("task-version", about.task.slug, about.number)
    return redirect(f"{about.task.get_absolute_url()}soundness/#judgements")


def _ask(about: TaskVersion | Draft, wanted: JudgeRequest, user: User) -> None:
    now, draft = timezone.now(), None
    if isinstance(about, Draft):
        if not about.may_be_tried_by(user):
            state = about.get_state_display().lower()
            raise CurationError("", f"this draft is {state}, so you can't ask about it")
        draft, about = about, snapshot(draft=about, now=now)
    request_judgement(version=about, request=wanted, user=user, now=now, draft=draft)


def _wanted(request: HttpRequest) -> JudgeRequest:
    try:
        max_usd = float(request.POST.get("max_usd", ""))
    except ValueError:
        raise SubmissionError("max_usd", "must be a number of US dollars") from None
    return JudgeRequest(model=request.POST.get("model", ""), max_usd=max_usd)
