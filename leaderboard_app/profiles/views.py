"""Pages of those who write kernels: agents and language models."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from leaderboard_app.profiles.page import (
    AgentPage,
    LastTest,
    ModelPage,
    ModelRow,
    NoSuchDeviceError,
    Profile,
    profile,
    work,
)
from leaderboard_app.profiles.selectors import Owner, agents_of
from runs_app.core.errors import SubmissionError
from runs_app.core.work.access import (
    listed_evaluations,
    visible_evaluations,
    visible_submissions,
)
from runs_app.models import Evaluation, LanguageModel, Submission
from runs_app.optimiser.selectors.authors import visible_agents, visible_language_models
from runs_app.optimiser.selectors.language_models import (
    Usage,
    host_of,
    key_is_set,
    last_test,
    tests_since,
    usages,
)
from runs_app.optimiser.services.calls import try_language_model
from tasks_app.parameters import takes
from tasks_app.people import AuthenticatedRequest

TESTS_PER_MINUTE = 6
"""Tests that the whole site may begin in a minute."""

_RECENT = 20


@require_safe
@takes("device")
def agent_detail(request: HttpRequest, agent_id: int) -> HttpResponse:
    """An agent or a person: what was achieved on a device, with whom, and what came last."""
    agent = get_object_or_404(visible_agents(request.user), pk=agent_id)
    entered = visible_submissions(request.user).filter(agent=agent)
    page = AgentPage(
        agent=agent,
        agents=agents_of(agent, request.user),
        profile=_profile(request, Owner(agent)),
        work=work(Owner(agent), request.user),
        evaluations=_newest(listed_evaluations(request.user), entered),
    )
    return render(request, "leaderboard_app/profiles/author.html", vars(page))


@never_cache
@require_safe
def language_model_list(request: HttpRequest) -> HttpResponse:
    """Every language model with its endpoint, its calls and what came of them."""
    models = list(visible_language_models(request.user))
    used = usages(request.user, models)
    rows = [_row(model, used[model.pk]) for model in models]
    rows.sort(key=lambda row: (not row.model.is_callable, row.model.name.casefold()))
    return render(request, "leaderboard_app/profiles/language_models.html", {"rows": rows})


@never_cache
@require_safe
@takes("device")
def language_model_detail(request: HttpRequest, language_model_id: int) -> HttpResponse:
    """A language model: how it is called, what it did, a test of it, and what it wrote last."""
    model = get_object_or_404(visible_language_models(request.user), pk=language_model_id)
    test = _last_test(request, model)
    if request.headers.get("HX-Request") == "true" and request.headers.get("HX-Target") != "usage":
        context = {"model": model, "test": test, "is_update": True}
        return render(request, "leaderboard_app/profiles/parts/language_model_test.html", context)
    entered = visible_submissions(request.user).filter(language_model=model)
    written = _newest(visible_evaluations(request.user), entered)
    page = ModelPage(
        model=model,
        keyed=_row(model, usages(request.user, [model])[model.pk]),
        profile=_profile(request, Owner(model)),
        work=work(Owner(model), request.user),
        test=test,
        evaluations=written,
    )
    return render(request, "leaderboard_app/profiles/language_model.html", vars(page))


@login_required
@require_POST
def language_model_test(request: AuthenticatedRequest, language_model_id: int) -> HttpResponse:
    """Have a language model asked the test question; its page then shows what comes."""
    model = get_object_or_404(LanguageModel, pk=language_model_id)
    user, now = request.user, timezone.now()
    if not user.is_staff:
        raise PermissionDenied("Only admins may test a language model: a test costs money.")
    if tests_since(now - timedelta(minutes=1)) >= TESTS_PER_MINUTE:
        reason = f"the limit is {TESTS_PER_MINUTE} tests a minute; wait a minute and try again"
        messages.error(request, f"Not tested: {reason}.")
    else:
        try:
            try_language_model(model=model, user=user, now=now)
        except SubmissionError as error:
            messages.error(request, f"Not tested: {error}.")
    return redirect(f"{model.get_absolute_url()}#test")


def _newest(
    evaluations: QuerySet[Evaluation], entered: QuerySet[Submission]
) -> QuerySet[Evaluation]:
    """The newest of these evaluations, of the submissions that were entered last."""
    entered = entered.filter(run=None).order_by("-created_at")
    last = list(entered.values_list("pk", flat=True)[:_RECENT])
    return evaluations.filter(submission__in=last)[:_RECENT]


def _profile(request: HttpRequest, owner: Owner) -> Profile | None:
    """What an owner achieved on the device that the address names."""
    try:
        return profile(owner, request.GET.get("device", ""))
    except NoSuchDeviceError as error:
        raise Http404(f"{owner.row} has no ranked result on the device {error}.") from None


def _row(model: LanguageModel, usage: Usage) -> ModelRow:
    return ModelRow(model=model, host=host_of(model), key_is_set=key_is_set(model), usage=usage)


def _last_test(request: HttpRequest, model: LanguageModel) -> LastTest | None:
    """The newest test, for admins alone: it holds the endpoint's own words."""
    call = last_test(model) if request.user.is_staff else None
    if call is None:
        return None
    ended_at = call.ended_at or timezone.now()
    took_s = (ended_at - (call.sent_at or call.created_at)).total_seconds()
    return LastTest(call=call, is_over=call.ended_at is not None, took_s=took_s)
