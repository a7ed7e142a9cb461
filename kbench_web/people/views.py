"""Pages on which admins see people and change their accounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.paginator import Page, Paginator
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from kbench_web.accounts import invitations
from kbench_web.accounts.sessions import live_sessions
from kbench_web.models import ApiToken, Invitation, SignUpPolicy
from kbench_web.people import services
from kbench_web.people.forms import ChangeForm, InvitationForm, QuotaForm, SignUpForm
from runs_app.core.errors import SubmissionError
from runs_app.core.forms import refusals
from runs_app.core.work.limits import Limits, limits_of
from runs_app.models import PersonalQuota, Run, Submission
from runs_app.submitting.quota import Quota, quota
from tasks_app.parameters import query_of, takes
from tasks_app.people import AuthenticatedRequest, admins_only, shown_name

_SITE = "kbench ("
"""How names of the site's own accounts begin, which belong to nobody: nobody can choose a blank."""
_CHANGED = {
    "activate": "can sign in again",
    "deactivate": "can no longer sign in",
    "admin": "is an admin now",
    "no-admin": "is no longer an admin",
}


@dataclass(frozen=True, kw_only=True)
class PeoplePage:
    """Accounts that fit `words` and `state`, and who may sign up.

    `address` repeats the two; `link` is a new invitation.
    """

    page: Page[User]
    words: str
    state: str
    address: str
    mode_form: SignUpForm
    form: InvitationForm
    link: str
    invitations: Iterable[Invitation]


@dataclass(frozen=True, kw_only=True)
class PersonPage:
    """One account: what it has used and its limits; `link` is one for a new password."""

    who: User
    form: QuotaForm
    link: str
    quota: Quota
    limits: Limits
    counts: Mapping[str, int]
    runs: int
    tokens: int
    sessions: int
    changes_open: bool


_PAGE = 50
_STATES = ("", "admins", "inactive", "new")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
@takes("q", "state", "page")
def people(request: AuthenticatedRequest) -> HttpResponse:
    """All accounts, searched; who may sign up; invitations."""
    now = timezone.now()
    form = InvitationForm(request.POST or None)
    link = ""
    if request.method == "POST" and form.is_valid():
        _, secret = invitations.invite(note=form.cleaned_data["note"], user=request.user, now=now)
        address = f"{reverse('sign-up')}?{invitations.PARAMETER}={secret}"
        link = request.build_absolute_uri(address)
        form = InvitationForm()
    words = request.GET.get("q", "").strip()[:150]
    state = request.GET.get("state", "") if request.GET.get("state", "") in _STATES else ""
    page = Paginator(_found(words, state), _PAGE).get_page(request.GET.get("page"))
    shown = PeoplePage(
        page=page,
        words=words,
        state=state,
        address=query_of({"q": words, "state": state}),
        mode_form=SignUpForm(initial={"mode": invitations.sign_up_mode().value}),
        form=form,
        link=link,
        invitations=invitations.valid_invitations(now).select_related("made_by")[:_PAGE],
    )
    status = 422 if form.is_bound else 200
    return render(request, "kbench_web/people/people.html", vars(shown), status=status)


def _found(words: str, state: str) -> QuerySet[User]:
    rows = User.objects.exclude(username__startswith=_SITE).order_by("-date_joined", "-pk")
    if words:
        named = Q(username__icontains=words) | Q(first_name__icontains=words)
        rows = rows.filter(named | Q(email__icontains=words))
    if state == "admins":
        rows = rows.filter(is_staff=True)
    elif state == "inactive":
        rows = rows.filter(is_active=False)
    elif state == "new":
        rows = rows.exclude(Exists(Submission.objects.filter(author=OuterRef("pk"))))
    return rows


@require_POST
@admins_only
def sign_up_mode(request: AuthenticatedRequest) -> HttpResponse:
    """Decide who may open an account."""
    form = SignUpForm(request.POST)
    if form.is_valid():
        mode = SignUpPolicy.Mode(form.cleaned_data["mode"])
        invitations.decide_sign_up(mode=mode, user=request.user, now=timezone.now())
        messages.success(request, f"{mode.label} can create an account now.")
    else:
        messages.error(request, "Nothing changed: there is no such rule.")
    return redirect("people")


@require_POST
@admins_only
def invitation_revoke(request: AuthenticatedRequest, invitation_id: int) -> HttpResponse:
    """Make an invitation useless."""
    invitation = get_object_or_404(Invitation, pk=invitation_id)
    if invitations.revoke(invitation=invitation, user=request.user, now=timezone.now()):
        messages.success(request, f"The invitation for {invitation} no longer works.")
    else:
        messages.error(request, "This invitation has been used or revoked, or has expired.")
    return redirect("people")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def person(request: AuthenticatedRequest, user_id: int) -> HttpResponse:
    """One account: what it has used, its limits, and what an admin may change."""
    who = get_object_or_404(User, pk=user_id)
    form = QuotaForm(request.POST or None, initial=_own_quota(who))
    if request.method == "POST" and form.is_valid():
        values = {name: form.cleaned_data[name] for name in services.QUOTAS}
        reason = form.cleaned_data["reason"]
        with form.refusals():
            services.set_quota(
                person=who, values=values, reason=reason, user=request.user, now=timezone.now()
            )
            messages.success(request, f"The limits for {shown_name(who)} have been set.")
            return redirect("person", who.pk)
    return _person_page(request, who, form, status=422 if form.is_bound else 200)


def _person_page(
    request: AuthenticatedRequest, who: User, form: QuotaForm, *, status: int = 200, link: str = ""
) -> HttpResponse:
    now = timezone.now()
    entered = Submission.objects.filter(author=who, run=None)
    counts = entered.aggregate(
        public=Count("pk", filter=Q(private=False)), private=Count("pk", filter=Q(private=True))
    )
    page = PersonPage(
        who=who,
        form=form,
        link=link,
        quota=quota(who, now),
        limits=limits_of(who, now),
        counts=counts,
        runs=Run.objects.filter(user=who).count(),
        tokens=ApiToken.objects.filter(user=who, revoked_at=None, expires_at__gt=now).count(),
        sessions=len(live_sessions(who, now)),
        changes_open=who.pk != request.user.pk
        and (request.user.is_superuser or not who.is_superuser),
    )
    return render(request, "kbench_web/people/person.html", vars(page), status=status)


def _own_quota(who: User) -> dict[str, object]:
    row = PersonalQuota.objects.filter(user=who).first()
    return {name: getattr(row, name) for name in services.QUOTAS} if row else {}


@require_POST
@admins_only
def person_change(request: AuthenticatedRequest, user_id: int) -> HttpResponse:
    """Activate or deactivate an account, or make its owner an admin."""
    who = get_object_or_404(User, pk=user_id)
    form = ChangeForm(request.POST)
    now = timezone.now()
    with refusals(request, "Nothing changed"):
        if not form.is_valid():
            field, errors = next(iter(form.errors.items()))
            raise SubmissionError(str(field), str(errors[0]))
        change, reason = form.cleaned_data["change"], form.cleaned_data["reason"]
        asked = {"person": who, "reason": reason, "user": request.user, "now": now}
        if change in ("activate", "deactivate"):
            services.set_active(active=change == "activate", **asked)
        else:
            services.set_admin(admin=change == "admin", **asked)
        messages.success(request, f"{shown_name(who)} {_CHANGED[change]}.")
    return redirect("person", who.pk)


@never_cache
@require_POST
@admins_only
def person_reset(request: AuthenticatedRequest, user_id: int) -> HttpResponse:
    """Make a link with which somebody chooses a new password; it is shown once."""
    who = get_object_or_404(User, pk=user_id)
    with refusals(request, "No link was created"):
        path = services.reset_link(person=who, user=request.user, now=timezone.now())
        link = request.build_absolute_uri(path)
        return _person_page(request, who, QuotaForm(initial=_own_quota(who)), link=link)
    return redirect("person", who.pk)


@require_POST
@admins_only
def person_sessions(request: AuthenticatedRequest, user_id: int) -> HttpResponse:
    """Sign somebody out everywhere."""
    who = get_object_or_404(User, pk=user_id)
    with refusals(request, "Nothing changed"):
        ended = services.end_all_sessions(person=who, user=request.user, now=timezone.now())
        messages.success(request, f"{ended} session(s) ended.")
    return redirect("person", who.pk)
