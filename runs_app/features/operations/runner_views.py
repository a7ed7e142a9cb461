"""Pages on which admins add runners, revoke their tokens, and settle doubts about them."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from runs_app.core.errors import SubmissionError
from runs_app.core.runners.tokens import add_runner, clear_flags, revoke
from runs_app.features.operations.forms import ReasonForm, RunnerForm
from runs_app.models import RunnerToken
from tasks_app.people import AuthenticatedRequest, admins_only


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def runner_add(request: AuthenticatedRequest) -> HttpResponse:
    """Make a runner's token, and show it this once."""
    form = RunnerForm(request.POST or None)
    context: dict[str, object] = {"form": form}
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        with form.refusals():
            token, text = add_runner(
                name=values["name"],
                serves=RunnerToken.Serves(values["serves"]),
                devices=list(values["devices"]),
                trusted=values["trusted"],
                user=request.user,
                now=timezone.now(),
            )
            site = request.build_absolute_uri("/").rstrip("/")
            command = (
                f"KBENCH_RUNNER_TOKEN={text} .venv/bin/python -m gpu_runner work"
                f" --site {site} --device cuda"
            )
            context = {"token": token, "command": command}
            return render(request, "operations/runner_added.html", context)
    status = 422 if form.is_bound else 200
    return render(request, "operations/runner_add.html", context, status=status)


@require_POST
@admins_only
def runner_revoke(request: AuthenticatedRequest, token_id: int) -> HttpResponse:
    """Let a token's runners in no more."""

    def act(token: RunnerToken, reason: str) -> str:
        count = revoke(token=token, reason=reason, user=request.user, now=timezone.now())
        jobs = "1 job is" if count == 1 else f"{count} jobs are"
        return f"The token of {token} is revoked. {jobs} back in the queue."

    return _done(request, token_id, act)


@require_POST
@admins_only
def runner_clear(request: AuthenticatedRequest, token_id: int) -> HttpResponse:
    """Settle the doubts about a runner."""

    def act(token: RunnerToken, reason: str) -> str:
        clear_flags(token=token, reason=reason, user=request.user, now=timezone.now())
        return f"{token} is no longer in doubt."

    return _done(request, token_id, act)


def _done(
    request: AuthenticatedRequest, token_id: int, act: Callable[[RunnerToken, str], str]
) -> HttpResponse:
    token = get_object_or_404(RunnerToken, pk=token_id)
    form = ReasonForm(request.POST)
    try:
        if not form.is_valid():
            raise SubmissionError("reason", str(form.errors["reason"][0]))
        messages.success(request, act(token, form.cleaned_data["reason"]))
    except SubmissionError as error:
        messages.error(request, f"{token}: {error}.")
    return redirect("operate")
