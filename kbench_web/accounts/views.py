"""Accounts with their tokens."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from kbench_web.accounts.forms import SignUpForm, TokenForm
from kbench_web.accounts.tokens import create_token
from kbench_web.models import ApiToken
from runs_app.submissions.quota import quota
from runs_app.work.access import listed_evaluations
from tasks_app.people import AuthenticatedRequest

_OWN = 20


class SignInView(LoginView):
    """Django's sign-in with our template; who is signed in already goes on."""

    template_name = "kbench_web/accounts/sign_in.html"
    redirect_authenticated_user = True


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    """Open an account and sign in to it."""
    if request.user.is_authenticated:
        return redirect("account")
    form = SignUpForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        user = form.save()
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        return HttpResponseRedirect(_next(request))
    context = {"form": form, "next": request.POST.get("next", request.GET.get("next", ""))}
    status = 422 if form.is_bound else 200
    return render(request, "kbench_web/accounts/sign_up.html", context, status=status)


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
    return render(
        request, "kbench_web/accounts/account.html", _account(user, form, created), status=status
    )


def _account(user: User, form: TokenForm, created: str) -> dict[str, Any]:
    now = timezone.now()
    own = listed_evaluations(user).filter(submission__author=user)
    return {
        "form": form,
        "created": created,
        "tokens": ApiToken.objects.filter(user=user, revoked_at__isnull=True, expires_at__gt=now),
        "quota": quota(user, now),
        "evaluations": own.order_by("-created_at")[:_OWN],
    }


@login_required
@require_POST
def revoke_token(request: AuthenticatedRequest, token_id: int) -> HttpResponse:
    """Make a token of one's own useless."""
    token = get_object_or_404(ApiToken, pk=token_id, user=request.user)
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
    messages.success(request, f"The token “{token.name}” is revoked.", extra_tags="good")
    return redirect("account")


def _next(request: HttpRequest) -> str:
    """Where the visitor wanted to go, if that is on this site."""
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if safe and wanted else settings.LOGIN_REDIRECT_URL
