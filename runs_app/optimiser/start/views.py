"""The page on which an optimization run is started, and its estimate of cost."""

from __future__ import annotations

import json
from dataclasses import replace

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from gpu_runner.data.verdict import Language
from runs_app.core.queue.loads import loads
from runs_app.core.work.access import find_submission
from runs_app.models import Run
from runs_app.optimiser.selectors.runs import callable_models, find_run
from runs_app.optimiser.selectors.spending import money_limits
from runs_app.optimiser.services.estimate import estimate_run
from runs_app.optimiser.services.request import read_run_request, request_of
from runs_app.optimiser.services.start import start_run
from runs_app.optimiser.start.forms import RunForm, initial_of
from runs_app.optimiser.start.page import EstimatePart, StartPage, strategies
from tasks_app.parameters import takes
from tasks_app.selectors import directions_of, published_tasks

_FROM_ADDRESS = ("task", "device", "direction", "strategy")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@takes(*_FROM_ADDRESS, "submission", "like")
def run_start(request: HttpRequest) -> HttpResponse:
    """Show the form, or start the run that it asks for; an error is said beside its field."""
    if request.method != "POST":
        return _page(request, RunForm(initial=_initial(request)))
    if not request.user.is_authenticated:
        return redirect_to_login(request.path)
    form = RunForm(request.POST)
    run = _start(request.user, form)
    if run is None:
        return _page(request, form, status=422)
    return redirect(run)


@never_cache
@require_POST
def run_estimate(request: HttpRequest) -> HttpResponse:
    """What the run that the form asks for would cost, and the same request over the API."""
    template = "runs_app/optimisation/start/parts/run_estimate.html"
    form = RunForm(request.POST)
    shown = EstimatePart(
        host=request.build_absolute_uri("/").rstrip("/"),
        strategies=strategies(form, request.user, has_models=form.has_models),
    )
    if not isinstance(request.user, User):  # a rehearsal costs time: not for everybody
        return render(request, template, vars(shown) | {"stranger": True})
    if form.is_valid():
        shown = replace(shown, command=_command(form.request()))
        with form.refusals():
            wanted = read_run_request(form.request())
            shown = replace(shown, estimate=estimate_run(request=wanted, user=request.user))
    return render(request, template, vars(replace(shown, problems=form.problems())))


def _start(user: User, form: RunForm) -> Run | None:
    """The started run, or None with the reason on the form."""
    with form.refusals() as faults:
        wanted = read_run_request(form.request(), faults)
        return start_run(user=user, request=wanted, now=timezone.now(), faults=faults)
    return None


def _page(request: HttpRequest, form: RunForm, status: int = 200) -> HttpResponse:
    page = StartPage(
        form=form,
        strategies=strategies(form, request.user, has_models=form.has_models),
        language_models=callable_models(),
        chosen_models=form["models"].value() or [],
        chosen_verifiers=form["verifiers"].value() or [],
        queues=loads(timezone.now()),
        money=money_limits(request.user, timezone.now()),
        directions=directions_of(published_tasks()),
    )
    return render(request, "runs_app/optimisation/start/run_start.html", vars(page), status=status)


def _initial(request: HttpRequest) -> dict[str, object]:
    """What the address says; `?submission=` begins with that submission's kernel.

    `?like=` has the settings and the kernel of that run, with a new random seed.
    """
    like = find_run(request.GET.get("like", ""), request.user)
    if like is not None:
        return initial_of(request_of(like))
    initial: dict[str, object] = {
        name: request.GET[name] for name in _FROM_ADDRESS if name in request.GET
    }
    submission = find_submission(request.GET.get("submission", ""), request.user)
    if submission is not None and submission.language != Language.PYTHON:  # no run writes it
        initial |= {
            "task": submission.task_version.task.slug,
            "direction": submission.direction,
            "seed_kernel": "own",
            "source": submission.source,
            "entry": submission.entry,
            "beside": submission.files,
        }
    return initial


def _command(wanted: dict[str, object]) -> str:
    """The request as a command; a source of one's own is read from a file."""
    source = wanted.pop("source", "")
    body = json.dumps(wanted, indent=2)
    if source:
        return f"jq --rawfile source kernel.cpp '. + {{source: $source}}' <<'END' |\n{body}\nEND\n"
    quoted = body.replace("'", "'\\''")
    return f"echo '{quoted}' |\n"
