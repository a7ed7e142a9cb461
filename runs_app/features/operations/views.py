"""Pages on which admins steer the site."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from runs_app.core.errors import SubmissionError
from runs_app.core.forms import refusals
from runs_app.core.runners.tokens import add_runner, clear_flags, revoke
from runs_app.features.operations import page
from runs_app.features.operations.emptying import Part, empty_queue, waiting_parts
from runs_app.features.operations.forms import (
    AnnouncementForm,
    EmptyingForm,
    ReasonForm,
    RunnerForm,
    SteeringForm,
)
from runs_app.features.operations.services import announce, end_announcement, steer
from runs_app.models import Announcement, Device, Runner, RunnerToken
from tasks_app.parameters import takes
from tasks_app.people import AuthenticatedRequest, admins_only

_HOURS = (6, 24, 168)
_ENDED = {
    Announcement.Kind.NOTE: "The announcement has ended.",
    Announcement.Kind.SUBMISSIONS: "People can submit kernels again.",
    Announcement.Kind.RUNS: "People can start and resume runs again.",
}
_STEERED = {
    Runner.Wanted.WORK: "takes jobs again",
    Runner.Wanted.DRAIN: "stops taking new jobs",
    Runner.Wanted.DISABLE: "returns its jobs to the queue",
}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def operate(request: AuthenticatedRequest) -> HttpResponse:
    """Everything that an admin can steer; a new announcement or stop is made here."""
    form = AnnouncementForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        with form.refusals():
            made = announce(
                kind=Announcement.Kind(values["kind"]),
                text=values["text"],
                until=values["until"],
                user=request.user,
                now=timezone.now(),
            )
            messages.success(request, f"{made.get_kind_display()}: everybody can see it now.")
            return redirect("operate")
    context = {"form": form, "site": page.overview(timezone.now())}
    status = 422 if form.is_bound else 200
    return render(request, "operations/operate.html", context, status=status)


@require_POST
@admins_only
def announcement_end(request: AuthenticatedRequest, announcement_id: int) -> HttpResponse:
    """Take an announcement back, or open again what it stopped."""
    announcement = get_object_or_404(Announcement, pk=announcement_id)
    with refusals(request, "Nothing changed"):
        end_announcement(announcement=announcement, user=request.user, now=timezone.now())
        messages.success(request, _ENDED[Announcement.Kind(announcement.kind)])
    return redirect("operate")


@require_POST
@admins_only
def runner_steer(request: AuthenticatedRequest, runner_id: int) -> HttpResponse:
    """Have a runner work, drain, or give its work back."""
    runner = get_object_or_404(Runner, pk=runner_id)
    form = SteeringForm(request.POST)
    try:
        if not form.is_valid():
            field, errors = next(iter(form.errors.items()))
            raise SubmissionError(str(field), str(errors[0]))
        wanted = Runner.Wanted(form.cleaned_data["wanted"])
        reason = form.cleaned_data["reason"]
        steer(runner=runner, wanted=wanted, reason=reason, user=request.user, now=timezone.now())
    except SubmissionError as error:
        messages.error(request, f"{runner.name}: {error}.")
    else:
        words = f"{runner.name} {_STEERED[wanted]} within seconds."
        messages.success(request, words)
    return redirect("operate")


@never_cache
@require_safe
@admins_only
@takes("hours")
def runner_sensors(request: AuthenticatedRequest, runner_id: int) -> HttpResponse:
    """Temperatures and clocks of a runner's device over time."""
    runner = get_object_or_404(Runner.objects.select_related("device"), pk=runner_id)
    text = request.GET.get("hours", "")
    hours = int(text) if text in map(str, _HOURS) else _HOURS[1]
    context = {"view": page.sensor_page(runner, hours, timezone.now()), "choices": _HOURS}
    return render(request, "operations/sensors.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def queue_empty(request: AuthenticatedRequest, device_slug: str) -> HttpResponse:
    """Say what emptying does, have it done, and show how far it is."""
    device = get_object_or_404(Device, pk=device_slug)
    form = EmptyingForm(request.POST or None)
    now = timezone.now()
    if request.method == "POST" and form.is_valid():
        parts = [Part(value) for value in form.cleaned_data["parts"]]
        reason = form.cleaned_data["reason"]
        with form.refusals():
            empty_queue(device=device, parts=parts, reason=reason, user=request.user, now=now)
            return redirect("queue-empty", device.slug)
    fragment = request.headers.get("HX-Request") == "true"
    shown = page.EmptyingPage(
        device=device,
        parts=waiting_parts(device, now),
        form=form,
        latest=device.emptyings.select_related("made_by").first(),
    )
    name = "parts/emptying.html" if fragment else "empty.html"
    status = 422 if form.is_bound else 200
    return render(request, f"operations/{name}", vars(shown), status=status)


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
                f" --site {site} --device {_device_of(token)}"
            )
            context = {"token": token, "command": command}
            return render(request, "operations/runner_added.html", context)
    status = 422 if form.is_bound else 200
    return render(request, "operations/runner_add.html", context, status=status)


def _device_of(token: RunnerToken) -> str:
    """What to call the device on its host: the CPU only if the token serves nothing else."""
    is_open = token.serves != RunnerToken.Serves.LISTED
    serves_gpus = token.devices.exclude(kind="cpu").exists()
    return "cuda" if is_open or serves_gpus else "cpu"


@require_POST
@admins_only
def runner_revoke(request: AuthenticatedRequest, token_id: int) -> HttpResponse:
    """Let a token's runners in no more."""

    def act(token: RunnerToken, reason: str) -> str:
        count = revoke(token=token, reason=reason, user=request.user, now=timezone.now())
        jobs = "1 job is" if count == 1 else f"{count} jobs are"
        return f"{token}'s token has been revoked. {jobs} back in the queue."

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
