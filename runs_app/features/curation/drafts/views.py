"""Pages on which tasks are proposed, written and decided about."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpu_runner.data.formats.kbench import SPECIFICATION
from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.files import free_name, limit_refusal, said_name
from runs_app.features.curation.drafts.forms import Edit, UploadForm, read_edit, read_number
from runs_app.features.curation.drafts.page import Workbench
from runs_app.features.curation.drafts.services import (
    close_draft,
    copy_version,
    create_draft,
    edit_draft,
    publish_draft,
    reopen_draft,
    send_back,
    send_to_review,
    take_over,
)
from runs_app.features.curation.drafts.uploads import Uploaded
from tasks_app.disclosure import admin_of
from tasks_app.errors import CurationError
from tasks_app.models import Draft, Task, TaskVersion
from tasks_app.pages.text_diff import Budget, TextDiff, diff
from tasks_app.parameters import takes, takes_uploads
from tasks_app.people import AuthenticatedRequest

_REFUSAL = "only admins can write a task's next version"
_ROWS = 30
_TOLD = 5  # skipped files, and tasks that were changed, of which an upload's page says so
_NEEDS_REASON = "It is not proven sound. To publish it, give a reason under “Publish anyway”."
# Fields whose refusals are sentences by themselves; all others are files or stand in one.
_OF_ACTS = {"", "reason", "revision", "version", "replaces", "reports"}
_OF_EDITS = {"new_path", "rename_to", "upload"}
_ADMINS_ACTIONS = ("take", "back", "publish", "override")


@dataclass(frozen=True, kw_only=True)
class DraftsPage:
    """Own drafts and the form for another; for admins also those `waiting`, and of others."""

    form: UploadForm
    page: Page[Draft]
    rows: Sequence[draft_page.DraftRow]
    limit: int | None
    waiting: Sequence[draft_page.DraftRow]
    waiting_count: int
    others: QuerySet[Draft]
    others_count: int


@dataclass(frozen=True, kw_only=True)
class DraftPage:
    """A draft's workbench, or its parts that a saving changes, `oob`."""

    draft: Draft
    bench: Workbench
    line: str = ""
    oob: bool = False
    refused: Mapping[str, str] | None = None  # an act, with the reason
    edit: Edit | None = None  # what was not kept
    refusal: str = ""  # why
    is_unsaved: bool = False
    theirs: str | None = None  # the stored text
    difference: TextDiff | None = None  # where that was changed meanwhile


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@takes_uploads
@takes("page")
def drafts(request: AuthenticatedRequest) -> HttpResponse:
    """Own drafts, a form for another, and for admins what waits for them."""
    user = request.user
    form = _sent(request, user) if request.method == "POST" else UploadForm()
    if form.is_valid():
        try:
            return redirect(_keep(request, user, form.cleaned_data["found"]))
        except CurationError as error:
            form.add_error("upload", f"Nothing was saved. {_sentence(error)}")
    page, status = _list(request, user, form), 422 if form.errors else 200
    return render(request, "curation/drafts/drafts.html", vars(page), status=status)


@login_required
@require_POST
def draft_example(request: AuthenticatedRequest) -> HttpResponse:
    """Start a draft from a small task that works."""
    user = request.user
    try:
        return redirect(_keep(request, user, Uploaded(folders=[_example(user)])))
    except CurationError as error:
        messages.error(request, _sentence(error))
        return redirect("drafts")


@login_required
@require_POST
def draft_copy(request: AuthenticatedRequest, slug: str, number: int) -> HttpResponse:
    """Start a draft of a task's next version from one of its versions; for admins."""
    user = admin_of(request, _REFUSAL)
    version = get_object_or_404(TaskVersion, task__slug=slug, number=number)
    try:
        return redirect(copy_version(version=version, user=user, now=timezone.now()))
    except CurationError as error:
        messages.error(request, f"No draft was created. {_sentence(error)}")
        return redirect("task-version", slug, number)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@takes("file", "line")
def draft(request: AuthenticatedRequest, draft_id: UUID) -> HttpResponse:
    """The workbench of a draft: read it, or keep what was written."""
    found = _draft(request, draft_id)
    if request.method != "POST":
        return _page(request, found, path=request.GET.get("file", ""))
    if not found.open_to(request.user):
        raise PermissionDenied(_withheld(found))
    edit = read_edit(request.POST, request.FILES, found.files)
    try:
        saved = edit_draft(
            draft=found,
            user=request.user,
            files=edit.result(),
            revision=edit.revision,
            now=timezone.now(),
        )
    except CurationError as error:
        return _unsaved(request, found, edit, error)
    if request.headers.get("HX-Request") == "true":
        return _fragments(request, saved, edit.path)
    query = {"file": edit.opens, **({"line": edit.line} if edit.line else {})}
    return HttpResponseRedirect(f"{saved.get_absolute_url()}?{urlencode(query)}")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def draft_act(request: AuthenticatedRequest, draft_id: UUID) -> HttpResponse:
    """Send a draft to review, close it, or decide about it.

    What is refused is said on a page of this address: whoever asks for that again gets the draft.
    """
    found = _draft(request, draft_id)
    if request.method != "POST":
        return redirect(found)
    user = request.user
    action = request.POST.get("action", "")
    reason = request.POST.get("reason", "")
    if action in _ADMINS_ACTIONS and not user.is_staff:
        raise PermissionDenied("only admins can decide on drafts")
    try:
        words = _act(found, user, action, reason, request.POST.dict())
    except CurationError as error:
        text = _NEEDS_REASON if error.field == "override" else _sentence(error)
        refused = {"action": action, "reason": reason, "text": text, "field": error.field}
        return _page(request, found, path=request.POST.get("file", ""), refused=refused)
    messages.success(request, words)
    return redirect(found)


@login_required
@require_safe
def draft_download(request: AuthenticatedRequest, draft_id: UUID) -> HttpResponse:
    """The draft's folder as a zip, as far as whoever asks may see it."""
    found = _draft(request, draft_id)
    texts = Workbench(found, request.user).texts
    if not texts:
        raise PermissionDenied(_withheld(found))
    folder = found.name or "task"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in texts.items():
            archive.writestr(f"{folder}/{path}", text)
    response = HttpResponse(packed.getvalue(), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{folder}.zip"'
    return response


def _act(found: Draft, user: User, action: str, reason: str, seen: Mapping[str, str]) -> str:
    """What was done, in a sentence; `seen` says what was looked at: files, version and reports."""
    given: dict[str, Any] = {"draft": found, "user": user, "now": timezone.now()}
    match action:
        case "send":
            send_to_review(revision=read_number(seen.get("revision", "")), **given)
            return "Sent to review: an admin will decide."
        case "reopen":
            reopen_draft(**given)
            return "Taken back from review: you can edit it again."
        case "back":
            send_back(reason=reason, **given)
            return "Sent back: its author can edit it again."
        case "take":
            take_over(**given)
            return "Taken over: its author can no longer see its files."
        case "close":
            close_draft(reason=reason, **given)
            return "Closed."
        case "publish" | "override":
            if action == "override" and not reason.strip():
                raise CurationError("reason", "give a reason for publishing it without a proof")
            override = reason if action == "override" else ""
            given |= {name: read_number(seen.get(name, "")) for name in ("revision", "replaces")}
            reports = seen.get("reports", "")
            version = publish_draft(override=override, reports=reports, **given)
            return f"Published: {version} is now the public version."
    raise CurationError("action", f"{action[:20]!r} is not a valid action")


def _sent(request: HttpRequest, user: User) -> UploadForm:
    """What was uploaded; it is not read if nothing of it would be kept."""
    refusal = limit_refusal(user, timezone.now())
    words = f"Nothing was saved. {capfirst(refusal)}." if refusal else ""
    return UploadForm(request.POST, request.FILES, refusal=words)


def _keep(request: HttpRequest, user: User, found: Uploaded) -> str | Draft:
    """Make a draft of each task that was found, or of none; where to go next."""
    with transaction.atomic():
        kept = [_create(user, files) for files in found.folders]
    for error in found.refused:
        messages.warning(request, f"Left out: {error}.")
    if found.skipped:
        words = ", ".join(found.skipped[:_TOLD])
        more = len(found.skipped) - _TOLD
        words += f" and {more} more" if more > 0 else ""
        messages.info(request, f"Ignored, because they aren't part of a task: {words}.")
    for name, notes in list(found.changed.items())[:_TOLD]:
        messages.info(request, f"{name}: {'; '.join(notes)}.")
    if len(found.changed) > _TOLD:
        more = len(found.changed) - _TOLD
        messages.info(request, f"{more} more tasks have notes like these.")
    following = [each for each in kept if each.task is not None]
    for each in following:
        messages.info(request, f"{each.task} already exists: this is a draft of its next version.")
    if len(kept) == 1:
        return kept[0]
    messages.success(request, f"{len(kept)} drafts were created.")
    return "drafts"


def _example(user: User) -> dict[str, str]:
    """The example, under a name that is free."""
    files = draft_page.example_files()
    name = said_name(files)
    renamed = f'name = "{free_name(name, user)}"'
    files[SPECIFICATION] = files[SPECIFICATION].replace(f'name = "{name}"', renamed, 1)
    return files


def _create(user: User, files: dict[str, str]) -> Draft:
    """A draft; what an admin uploads under the name of a task is its next version."""
    task = None
    if user.is_staff:
        known = Task.objects.exclude(state=Task.State.DRAFT)
        task = known.filter(slug=said_name(files)).first()
    return create_draft(user=user, files=files, now=timezone.now(), task=task)


def _list(request: HttpRequest, user: User, form: UploadForm) -> DraftsPage:
    page = Paginator(draft_page.own_drafts(user), _ROWS).get_page(request.GET.get("page"))
    nothing, is_admin = Draft.objects.none(), user.is_staff
    waiting = draft_page.drafts_in_review() if is_admin else nothing
    others = draft_page.open_drafts_of_others(user) if is_admin else nothing
    return DraftsPage(
        form=form,
        page=page,
        rows=[draft_page.DraftRow(each, user) for each in page],
        limit=None if user.is_staff else settings.MAX_OPEN_DRAFTS_PER_USER,
        waiting=[draft_page.DraftRow(each, user) for each in waiting[:_ROWS]],
        waiting_count=waiting.count(),
        others=others[:_ROWS],
        others_count=others.count(),
    )


def _page(
    request: HttpRequest, found: Draft, *, path: str, refused: dict[str, str] | None = None
) -> HttpResponse:
    line = request.GET.get("line", "")
    page = DraftPage(
        draft=found,
        bench=Workbench(found, request.user, path),
        refused=refused,
        line=line if line.isdecimal() and len(line) < 8 else "",
    )
    status = 422 if refused else 200
    return render(request, "curation/drafts/draft.html", vars(page), status=status)


def _fragments(request: HttpRequest, saved: Draft, path: str) -> HttpResponse:
    """The parts of the page that a saving changes; the text stays as it is in the browser."""
    fresh = draft_page.find_draft(saved.pk, request.user)
    assert fresh is not None, "whoever may save it may see it"
    page = DraftPage(draft=fresh, bench=Workbench(fresh, request.user, path), oob=True)
    response = render(request, "curation/drafts/parts/draft_saved.html", vars(page))
    response["HX-Trigger-After-Settle"] = "draft-saved"
    return response


def _unsaved(request: HttpRequest, found: Draft, edit: Edit, error: CurationError) -> HttpResponse:
    """The page, or its notice, with what was written and why it was not kept."""
    fresh = draft_page.find_draft(found.pk, request.user) or found
    stale = error.field == "revision"
    theirs = fresh.files.get(edit.path)
    is_saving = stale or edit.action in ("save", "open")
    page = DraftPage(
        draft=fresh,
        bench=Workbench(fresh, request.user, edit.path),
        edit=edit,
        refusal=_sentence(error),
        is_unsaved=is_saving or edit.text != (theirs or ""),
        theirs=theirs,
        difference=diff(theirs or "", edit.text, Budget()) if stale else None,
    )
    fragment = request.headers.get("HX-Request") == "true"
    name = "parts/draft_unsaved.html" if fragment else "draft.html"
    return render(request, f"curation/drafts/{name}", vars(page), status=409 if stale else 422)


def _draft(request: HttpRequest, draft_id: UUID) -> Draft:
    found = draft_page.find_draft(draft_id, request.user)
    if found is None:
        raise Http404("There is no such draft.")
    return found


def _withheld(found: Draft) -> str:
    """Why somebody who knows of a draft may not have its files."""
    if found.taken_by_id is None and found.is_settled:
        return "it is public, so only admins can see all of its files, and nobody can change them"
    return "an admin has taken this draft over"


def _sentence(error: CurationError) -> str:
    if error.field in _OF_ACTS | _OF_EDITS:
        return f"{capfirst(error.reason)}."
    return "; ".join(f"{at.removeprefix('files.')}: {why}" for at, why in error.every) + "."
