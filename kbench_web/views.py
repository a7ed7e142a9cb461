"""The first page, accounts with their tokens, and the API's documentation."""

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
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from kbench_web.forms import SignUpForm, TokenForm
from kbench_web.models import ApiToken
from kbench_web.tokens import create_token
from leaderboard_app.selectors import devices_with_results, top
from runs_app import selectors
from runs_app.run_page import run_rows
from tasks_app.selectors import published_tasks

_RECENT = 8
_RUNS = 4
_OWN = 20


class SignInView(LoginView):
    """Django's sign-in with our template; who is signed in already goes on."""

    template_name = "kbench_web/sign_in.html"
    redirect_authenticated_user = True


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What this is, who leads on each device, what ran last, and how to begin."""
    evaluations = selectors.listed_evaluations(request.user)
    finished = evaluations.filter(finished_at__isnull=False).order_by("-finished_at")
    under_way = evaluations.filter(finished_at__isnull=True)
    context = {
        "boards": [
            (device, rows) for device in devices_with_results() if (rows := top(device.slug))
        ],
        "recent": finished[:_RECENT],
        "active": under_way.order_by("background", "-status", "created_at")[:_RECENT],
        "queues": selectors.queue_overview(request.user, timezone.now()),
        "runs": run_rows(selectors.running_runs(request.user, _RUNS)),
        "tasks": published_tasks().count(),
        "host": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "kbench_web/home.html", context)


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
    return render(request, "kbench_web/sign_up.html", context, status=status)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """A person's tokens, quota and submissions; a new token is shown this once."""
    user = _user(request)
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
    return render(request, "kbench_web/account.html", _account(user, form, created), status=status)


def _account(user: User, form: TokenForm, created: str) -> dict[str, Any]:
    now = timezone.now()
    own = selectors.listed_evaluations(user).filter(submission__author=user)
    return {
        "form": form,
        "created": created,
        "tokens": ApiToken.objects.filter(user=user, revoked_at__isnull=True, expires_at__gt=now),
        "quota": selectors.quota(user, now),
        "evaluations": own.order_by("-created_at")[:_OWN],
    }


@login_required
@require_POST
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    """Make a token of one's own useless."""
    token = get_object_or_404(ApiToken, pk=token_id, user=_user(request))
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
    messages.success(request, f"The token “{token.name}” is revoked.", extra_tags="good")
    return redirect("account")


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    """The API by example."""
    context = {
        "host": request.build_absolute_uri("/").rstrip("/"),
        "per_minute": settings.API_REQUESTS_PER_MINUTE,
        "per_day": settings.MAX_SUBMISSIONS_PER_DAY,
    }
    return render(request, "kbench_web/api_docs.html", context)


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User), "the view asks for a sign-in"
    return request.user


def _next(request: HttpRequest) -> str:
    """Where the visitor wanted to go, if that is on this site."""
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if safe and wanted else settings.LOGIN_REDIRECT_URL
