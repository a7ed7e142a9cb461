"""The part of a draft's page that has it checked and its kernels tried."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from runs_app import services
from runs_app.selectors.trials import trials
from runs_app.services import SubmissionError
from tasks_app import services as task_services
from tasks_app.models import Act, Draft
from tasks_app.services import CurationError


@login_required
@never_cache
@require_safe
def draft_trials(request: HttpRequest, draft_id: UUID) -> HttpResponse:
    """The part of the page, for htmx."""
    draft = _draft(request, draft_id)
    context = trials(draft, request.user, timezone.now())
    return render(request, "runs_app/parts/trials.html", context)


@login_required
@require_POST
def draft_check(request: HttpRequest, draft_id: UUID) -> HttpResponse:
    """Have a draft's present files checked on a device."""
    draft = _draft(request, draft_id)
    user, now = request.user, timezone.now()
    assert isinstance(user, User), "the view asks for a sign-in"
    try:
        with transaction.atomic():
            device = services.resolve_device(request.POST.get("device", ""), "")
            version = task_services.snapshot(draft=draft, now=now)
            services.request_check(version=version, device=device, user=user, now=now)
            details = {"device": device.slug}
            task_services.note(
                Act.Kind.CHECKED, now=now, actor=user, version=version, draft=draft, details=details
            )
    except (CurationError, SubmissionError) as error:
        messages.error(request, f"Not checked: {error}.", extra_tags="bad")
    return redirect(draft)


def _draft(request: HttpRequest, draft_id: UUID) -> Draft:
    draft = Draft.objects.select_related("task", "version__task").filter(pk=draft_id).first()
    if draft is None or not draft.open_to(request.user):
        raise Http404("There is no such draft, or it is somebody else's.")
    return draft
