"""Pages of challenges and of their entries."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from runs_app.core.forms import refusals
from runs_app.features.challenges import page
from runs_app.features.challenges.figures import contenders, entry_results, ranking_words
from runs_app.features.challenges.forms import ChallengeForm, EntryForm, ReportForm
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.features.challenges.page import winner
from runs_app.features.challenges.selectors import (
    all_challenges,
    entries_of,
    evaluations_of,
    find_challenge,
    find_entry,
    sees_sources,
    sees_transcript,
)
from runs_app.features.challenges.services import (
    end_challenge,
    enter,
    finish,
    make_challenge,
    may_end,
    may_make,
    plan_challenge,
    report,
)
from tasks_app.disclosure import sees_hidden
from tasks_app.parameters import takes
from tasks_app.people import AuthenticatedRequest

_FOLDER = "challenges"
_ENTERED = "challenge-entered"  # in the session, from entering to the page that shows it
_PER_PAGE = 20
_SHOWN = 200


@require_safe
@takes("page")
def challenges(request: HttpRequest) -> HttpResponse:
    """All challenges, newest first."""
    shown = page.ChallengesPage(
        page=Paginator(all_challenges(), _PER_PAGE).get_page(request.GET.get("page")),
        may_make=may_make(request.user),
        now=timezone.now(),
    )
    return render(request, f"{_FOLDER}/challenges.html", vars(shown))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def challenge_new(request: AuthenticatedRequest) -> HttpResponse:
    """The form that makes a challenge: it shows what would be made, and then makes it."""
    if not may_make(request.user):
        raise PermissionDenied
    form = ChallengeForm(request.POST or None)
    shown, step = page.NewChallengePage(form=form), request.POST.get("step")
    if step != "change" and form.is_bound:
        with form.refusals() as faults:
            fields = {**form.request(), "user": request.user, "now": timezone.now()}
            fields["faults"] = faults
            if step == "make":
                return redirect(make_challenge(**fields))
            plan = plan_challenge(**fields)
            shown = page.NewChallengePage(form=form, plan=plan, busy=page.busy(plan))
    status = 422 if form.is_bound and form.errors else 200
    return render(request, f"{_FOLDER}/challenge_new.html", vars(shown), status=status)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@takes("page")
def challenge(request: HttpRequest, slug: str) -> HttpResponse:
    """A challenge with its contenders side by side; an entry is begun here."""
    found = find_challenge(slug)
    form = EntryForm(request.POST or None)
    if request.method == "POST":
        if not isinstance(request.user, User):
            raise PermissionDenied
        if form.is_valid() and (entered := _enter(found, request.user, form)) is not None:
            entry, request.session[_ENTERED] = entered[0], [str(entered[0].pk), entered[1]]
            return redirect(entry)  # so that a reload doesn't enter again
    results = entry_results(found, list(entries_of(found)))
    groups = contenders(results)
    now = timezone.now()
    shown = page.ChallengePage(
        challenge=found,
        about=page.about(found),
        versions=found.versions.select_related("task").order_by("task__slug"),
        is_open=found.is_open(now),
        now=now,
        may_end=may_end(request.user, found),
        contenders=groups,
        winner=winner(found, groups),
        lines=page.lines(groups),
        picture=page.picture(groups),
        page=Paginator(results, _PER_PAGE).get_page(request.GET.get("page")),
        host=_host(request),
        form=form,
    )
    status = 422 if form.is_bound else 200
    return render(request, f"{_FOLDER}/challenge.html", vars(shown), status=status)


@login_required
@require_POST
def challenge_end(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """End a challenge before its time."""
    found = find_challenge(slug)
    with refusals(request, "Nothing changed"):
        end_challenge(challenge=found, user=request.user, now=timezone.now())
    return redirect(found)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def entry(request: HttpRequest, entry_id: UUID) -> HttpResponse:
    """An entry: what it has left, what it submitted, what came of it; its owner reports here."""
    found = find_entry(entry_id)
    if request.method != "POST":
        made, token = request.session.pop(_ENTERED, ("", ""))
        shown = token if made == str(found.pk) else ""
        return _entry_page(request, found, ReportForm(), token=shown)
    if found.user_id != request.user.pk:
        raise PermissionDenied
    form = ReportForm(request.POST, request.FILES)
    if form.is_valid():
        with form.refusals():
            report(entry=found, now=timezone.now(), **form.cleaned_data)
            return redirect(found)
    return _entry_page(request, found, form, status=422)


@login_required
@require_POST
def entry_finish(request: AuthenticatedRequest, entry_id: UUID) -> HttpResponse:
    """End an entry; its best kernels are ranked."""
    found = find_entry(entry_id)
    with refusals(request, "Nothing changed"):
        finish(entry=found, user=request.user, now=timezone.now())
    return redirect(found)


@require_safe
def entry_transcript(request: HttpRequest, entry_id: UUID) -> HttpResponse:
    """What the agent did, as a text."""
    found = find_entry(entry_id)
    if not found.transcript or not sees_transcript(request.user, found):
        raise Http404("There is no transcript, or it is not public yet.")
    response = HttpResponse(found.transcript, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="transcript-{found.pk}.txt"'
    return response


def _enter(challenge: Challenge, user: User, form: EntryForm) -> tuple[Entry, str] | None:
    values = form.cleaned_data
    with form.refusals():
        return enter(
            challenge=challenge,
            user=user,
            agent=values["agent"],
            setting=values["setting"],
            language_model=values["model"],
            now=timezone.now(),
        )
    return None


def _entry_page(
    request: HttpRequest, found: Entry, form: ReportForm, *, token: str = "", status: int = 200
) -> HttpResponse:
    user = request.user
    result = entry_results(found.challenge, [found])[0]
    evaluations = list(evaluations_of(found))
    is_mine = found.user_id == user.pk
    shown = page.EntryPage(
        entry=found,
        challenge=found.challenge,
        result=result,
        figures=page.figures(result),
        spent=page.spent(found),
        ranking=ranking_words(result, timezone.now()),
        budget=found.challenge.evaluations * len(result.tasks),
        curves=page.curves(result, evaluations),
        evaluations=list(enumerate(evaluations, 1))[-_SHOWN:][::-1],
        all_evaluations=len(evaluations),
        sees_sources=sees_sources(user, found),
        sees_transcript=sees_transcript(user, found),
        has_transcript=Entry.objects.filter(pk=found.pk).exclude(transcript="").exists(),
        may_write=is_mine
        and found.state == Entry.State.RUNNING
        and timezone.now() < found.deadline_at,
        may_finish=found.state == Entry.State.RUNNING and (is_mine or sees_hidden(user)),
        may_report=is_mine and found.challenge.closed_at is None,
        form=form,
        token=token,
        host=_host(request),
        now=timezone.now(),
    )
    return render(request, f"{_FOLDER}/entry.html", vars(shown), status=status)


def _host(request: HttpRequest) -> str:
    return request.build_absolute_uri("/").rstrip("/")
