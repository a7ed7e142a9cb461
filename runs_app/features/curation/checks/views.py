"""The part of a draft's page that has it checked and its kernels tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from runs_app.core.checks.selectors import find_check
from runs_app.core.checks.services import cancel_check, request_check
from runs_app.core.errors import SubmissionError
from runs_app.core.forms import refusals
from runs_app.core.queue.devices import resolve_device
from runs_app.core.queue.many import back, selected, tell_of
from runs_app.features.curation.checks.dry_run import dry_run
from runs_app.features.curation.checks.page import findings_part, results_part
from runs_app.models import Device, TaskCheck
from tasks_app import selectors
from tasks_app.disclosure import admin_of
from tasks_app.errors import CurationError
from tasks_app.models import Draft, Task
from tasks_app.numbers import counted
from tasks_app.parameters import takes
from tasks_app.people import STOP_ASKING, AuthenticatedRequest, signed_in
from tasks_app.publishing.snapshots import snapshot

RESULTS = "findings-results"
"""Id of the element that asks for itself while something is under way."""


@signed_in("findings", RESULTS)
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
            request, "curation/checks/parts/findings_taken.html", context, status=STOP_ASKING
        )
    draft, now = selectors.open_draft(draft_id, request.user), timezone.now()
    if results_only:
        results = results_part(draft, request.user, now)
        results = replace(results, say=results.status_key != request.GET.get("said", ""))
        return render(request, "curation/checks/parts/finding_results.html", vars(results))
    part = findings_part(draft, request.user, now)
    return render(request, "curation/checks/parts/findings.html", vars(part))


@signed_in("findings", RESULTS)
@require_POST
def draft_check(request: AuthenticatedRequest, draft_id: UUID) -> HttpResponse:
    """Have a draft's files checked on a device, as they are now."""
    return _asked(request, draft_id, partial(request_check, user=request.user), "Not checked")


@signed_in("findings", RESULTS)
@require_POST
def draft_try(request: AuthenticatedRequest, draft_id: UUID) -> HttpResponse:
    """Try the kernels that come with a draft, as its files are now."""
    ask = partial(dry_run, user=request.user, mode=request.POST.get("mode", ""))
    return _asked(request, draft_id, ask, "Not tried")


@signed_in("findings", RESULTS)
@require_POST
def check_cancel(request: AuthenticatedRequest, check_id: UUID) -> HttpResponse:
    """Take a check back; the form says on which draft's page it stands."""
    try:
        draft = selectors.open_draft(UUID(request.POST.get("draft", "")), request.user)
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
    return _answer(request, draft, refusal, "Not canceled")


def _asked(
    request: AuthenticatedRequest, draft_id: UUID, ask: Callable[..., object], words: str
) -> HttpResponse:
    """Ask for something about the version of a draft's files; stores nothing if it is refused."""
    draft, now = selectors.open_draft(draft_id, request.user), timezone.now()
    refusal: CurationError | SubmissionError | None = None
    try:
        if not draft.may_be_tried_by(request.user):
            state = draft.get_state_display().lower()
            raise CurationError("", f"this draft is {state}, so it can't be checked or tried")
        with transaction.atomic():
            device = resolve_device(request.POST.get("device", ""))
            ask(version=snapshot(draft=draft, now=now), device=device, now=now)
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
        fresh = selectors.open_draft(draft.pk, request.user)
        part = findings_part(fresh, request.user, timezone.now(), request.POST.dict())
        part = replace(part, refusal=refusal, refused=words)
        status = 422 if refusal else 200
        return render(request, "curation/checks/parts/findings.html", vars(part), status=status)
    if refusal:
        messages.error(request, f"{words}: {refusal}.")
    return redirect(f"{draft.get_absolute_url()}#findings")


@login_required
@require_POST
def tasks_check(request: AuthenticatedRequest) -> HttpResponse:
    """Queue a check of each selected task on a device: of the version that its row speaks of."""
    user = admin_of(request, "only admins can check many tasks")
    with refusals(request, "No check"):
        tasks, device = selected(request)
        checks, refused = _check(tasks, device, user)
        text = f"Queued {counted(len(checks), 'check')} on {device.name}."
        tell_of(request, text, refused, done=bool(checks))
    return back(request)


def _check(
    tasks: Sequence[Task], device: Device, user: User
) -> tuple[list[TaskCheck], dict[str, str]]:
    """The checks that are under way now, and why other tasks have none, by name."""
    checks: list[TaskCheck] = []
    refusals: dict[str, str] = {}
    new = selectors.drafts_of_new(tasks)
    for task in tasks:
        version = new[task.pk].version if task.pk in new else task.current_version
        if version is None:
            refusals[task.slug] = "has no version to check"
            continue
        try:
            checks.append(
                request_check(version=version, device=device, user=user, now=timezone.now())
            )
        except CurationError as error:
            refusals[task.slug] = error.reason
    return checks, refusals
