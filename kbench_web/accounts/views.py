"""An account: its tokens, its shown name, and its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from kbench_web.accounts.forms import DeletionForm, NameForm, TokenForm
from kbench_web.accounts.names import delete_account, take_name
from kbench_web.accounts.sessions import live_sessions
from kbench_web.accounts.tokens import create_token
from kbench_web.models import ApiToken
from kbench_web.rate_limit import count
from runs_app.core.errors import SubmissionError
from runs_app.core.work.access import listed_evaluations
from runs_app.models import Agent, Evaluation
from runs_app.submitting.quota import Quota, quota
from tasks_app.people import AuthenticatedRequest

_OWN = 20
_PROOFS_PER_MINUTE = 5


@dataclass(frozen=True, kw_only=True)
class AccountPage:
    """A person's tokens, quota and submissions; `created` is a new token, which is shown once.

    `addresses` is None where the site sends no e-mail.
    """

    form: TokenForm
    created: str
    tokens: Iterable[ApiToken]
    quota: Quota
    evaluations: Iterable[Evaluation]
    person: Agent | None
    agents: Iterable[Agent]
    sessions: int
    addresses: Iterable[EmailAddress] | None
    links: Iterable[SocialAccount]
    has_providers: bool


@dataclass(frozen=True, kw_only=True)
class FormPage:
    """A form with its purpose, and the label of its button."""

    form: NameForm
    title: str
    lede: str
    button: str


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: AuthenticatedRequest) -> HttpResponse:
    """A person's tokens, quota and submissions; a new token is shown this once."""
    user = request.user
    form = TokenForm(request.POST or None)
    created = ""
    if request.method == "POST" and form.is_valid():
        _, created = create_token(
            user=user,
            name=form.cleaned_data["name"],
            scopes=form.scopes,
            lifetime=form.lifetime,
            now=timezone.now(),
        )
        form = TokenForm()
    status = 422 if form.is_bound else 200
    page = _account(user, form, created)
    return render(request, "kbench_web/accounts/account.html", vars(page), status=status)


def _account(user: User, form: TokenForm, created: str) -> AccountPage:
    now = timezone.now()
    own = listed_evaluations(user).filter(submission__author=user)
    return AccountPage(
        form=form,
        created=created,
        tokens=ApiToken.objects.filter(user=user, revoked_at__isnull=True, expires_at__gt=now),
        quota=quota(user, now),
        evaluations=own.order_by("-created_at")[:_OWN],
        person=Agent.objects.filter(user=user).first(),
        agents=Agent.objects.filter(owner=user).order_by("name"),
        sessions=len(live_sessions(user, now)),
        addresses=EmailAddress.objects.filter(user=user) if settings.EMAIL_CONFIGURED else None,
        links=SocialAccount.objects.filter(user=user),
        has_providers=bool(settings.SOCIALACCOUNT_PROVIDERS),
    )


@login_required
@require_POST
def revoke_token(request: AuthenticatedRequest, token_id: int) -> HttpResponse:
    """Create a token of one's own useless."""
    token = get_object_or_404(ApiToken, pk=token_id, user=request.user)
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
    messages.success(request, f"The token “{token.name}” has been revoked.")
    return redirect("account")


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def name(request: AuthenticatedRequest) -> HttpResponse:
    """Choose the name under which everybody sees one."""
    form = NameForm(request.POST or None, initial={"name": request.user.first_name})
    if request.method == "POST" and form.is_valid():
        try:
            take_name(user=request.user, name=form.cleaned_data["name"], now=timezone.now())
        except SubmissionError as error:
            form.add_error("name", error.reason)
        else:
            messages.success(request, "Everybody now sees this name.")
            return redirect("account")
    page = FormPage(
        form=form,
        title="Your display name",
        lede=f"You sign in as {request.user.get_username()}. On boards, submissions and runs,"
        " others see the name that you choose here.",
        button="Save name",
    )
    status = 422 if form.is_bound else 200
    return render(request, "kbench_web/accounts/form.html", vars(page), status=status)


@login_required
@never_cache
@sensitive_post_parameters("proof")
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: AuthenticatedRequest) -> HttpResponse:
    """Delete one's account; what was public stays without the name."""
    form = DeletionForm(request.user, request.POST or None)
    if request.method == "POST":
        if count(f"delete {request.user.pk}") > _PROOFS_PER_MINUTE:
            form.add_error(None, "Too many attempts: wait a minute.")
        elif form.is_valid():
            try:
                delete_account(user=request.user, now=timezone.now())
            except SubmissionError as error:
                form.add_error(None, error.reason)
            else:
                logout(request)
                messages.success(request, "Your account has been deleted.")
                return redirect("home")
    status = 422 if form.is_bound else 200
    return render(request, "kbench_web/accounts/delete.html", {"form": form}, status=status)
