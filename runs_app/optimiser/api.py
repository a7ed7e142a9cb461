"""The API's view of optimization runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Status

from runs_app.core.api_pages import ask_again, newest_first
from runs_app.core.errors import SubmissionError
from runs_app.core.messaging import broadcast
from runs_app.models import Candidate, Run
from runs_app.optimiser.api_schemas import (
    AgainIn,
    CandidateOut,
    EventsOut,
    ExtendIn,
    RunFilters,
    RunIn,
    RunListed,
    RunOut,
)
from runs_app.optimiser.disclosure import public_candidate
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.selectors.confirmation import confirmation_of
from runs_app.optimiser.selectors.over_seed import OverSeed, over_seeds
from runs_app.optimiser.selectors.runs import (
    EVENTS_AT_ONCE,
    budgets,
    filtered_runs,
    find_candidate,
    named_run,
    run_events,
    run_summary,
    run_waiting_reason,
)
from runs_app.optimiser.services.control import (
    changed_budget,
    check_extension,
    extend_run,
    pause_run,
    resume_run,
    stop_run,
)
from runs_app.optimiser.services.request import read_run_request, request_of
from runs_app.optimiser.services.start import start_run
from runs_app.submitting.api import Problem
from tasks_app.errors import Faults
from tasks_app.people import AuthenticatedRequest, shown_name

router = Router(tags=["runs"])


_FEW_EVENTS = 20  # chosen: an event has some 200 bytes, so an agent reads about 4 KB
_REFUSALS = dict.fromkeys((401, 403, 404, 409, 422, 429), Problem)


@router.post("/runs", response={201: RunOut, **_REFUSALS}, summary="Start a run")
def create_run(
    request: AuthenticatedRequest, response: HttpResponse, payload: RunIn
) -> Status[dict[str, object]]:
    """Start an optimization run."""
    document = payload.dict()
    for name in ("budget", "verifiers"):
        if document[name] is None:
            del document[name]
    run = _started(request, document)
    response["Location"] = f"{request.path}/{run.pk}"
    return Status(201, _run(run))


@router.get("/runs", response={200: list[RunListed], 422: Problem}, summary="Runs, newest first")
def list_runs(
    request: HttpRequest, response: HttpResponse, filters: Query[RunFilters]
) -> list[dict[str, object]]:
    """Return the runs that you can see."""
    given = {name: getattr(filters, name) for name in ("task", "device", "strategy", "status")}
    faults = Faults()
    for name, known in (("strategy", list(STRATEGIES)), ("status", Run.Status.values)):
        if given[name] and given[name] not in known:
            faults.add(name, f"{given[name][:100]!r} is not one of {', '.join(known)}")
    faults.tell(SubmissionError)
    rows = filtered_runs(request.user, given)
    runs = newest_first(rows, request, response, after=filters.after, limit=filters.limit)
    now, caps, gains = timezone.now(), budgets(runs), over_seeds(runs)
    return [_listed(run, caps[run.pk], gains.get(run.pk), now) for run in runs]


@router.get("/runs/{run_id}", response={200: RunOut, 404: Problem}, summary="One run")
def show_run(request: HttpRequest, response: HttpResponse, run_id: str) -> dict[str, object]:
    """Return a run. `Retry-After` and `ETag` work as for a submission's status."""
    run = named_run(run_id, request.user)
    if not run.is_over:
        ask_again(response, run.created_at)
    return _run(run)


@router.get(
    "/runs/{run_id}/events",
    response={200: EventsOut, 404: Problem, 422: Problem},
    summary="What happened in a run",
)
def show_events(
    request: HttpRequest,
    run_id: str,
    since: int = Query(0, ge=0, lt=2**31),  # type: ignore[type-arg]
    limit: int = Query(_FEW_EVENTS, ge=1, le=EVENTS_AT_ONCE),  # type: ignore[type-arg]
) -> dict[str, object]:
    """Return the first events after number `since`, in the form that the socket sends."""
    run = named_run(run_id, request.user)
    hidden = run.task_version.hidden_names
    found = run_events(run, since, limit)
    return {
        "events": [broadcast.run_message(event, {}, hidden) for event in found],
        "newest": run.events_stored,
        "left_out": run.events.filter(seq__gt=found[-1].seq).count() if found else 0,
    }


@router.get(
    "/runs/{run_id}/candidates/{number}",
    response={200: CandidateOut, 404: Problem, 422: Problem},
    summary="One candidate",
)
def show_candidate(request: HttpRequest, run_id: str, number: int) -> Candidate:
    """Return a candidate of a run."""
    run = named_run(run_id, request.user)
    candidate = find_candidate(run, number) if 0 < number < 2**31 else None
    if candidate is None:
        raise Http404(f"this run has no candidate {number}")
    return public_candidate(candidate, run.task_version.hidden_names)


@router.post("/runs/{run_id}/pause", response={200: RunOut, **_REFUSALS}, summary="Pause a run")
def pause(request: HttpRequest, run_id: str) -> dict[str, object]:
    """Start no new calls or measurements. Those already under way finish and count."""
    return _control(request, run_id, pause_run)


@router.post("/runs/{run_id}/resume", response={200: RunOut, **_REFUSALS}, summary="Resume a run")
def resume(request: HttpRequest, run_id: str) -> dict[str, object]:
    """Continue a paused run."""
    return _control(request, run_id, resume_run)


@router.post("/runs/{run_id}/stop", response={200: RunOut, **_REFUSALS}, summary="Stop a run")
def stop(request: HttpRequest, run_id: str) -> dict[str, object]:
    """End a run for good."""
    return _control(request, run_id, stop_run)


@router.post("/runs/{run_id}/extend", response={200: RunOut, **_REFUSALS}, summary="Extend a run")
def extend(
    request: AuthenticatedRequest, run_id: str, payload: ExtendIn = ExtendIn.left_out()
) -> dict[str, object]:
    """Change caps: a number replaces the old one, and null removes it.

    A run that used up its budget continues if every cap leaves something to spend. If its strategy
    has finished, add more work, such as more generations: see `parameters`. If a cap is below what
    the run has already spent, the run ends once nothing is under way.
    """
    run = named_run(run_id, request.user)
    caps = payload.dict(exclude_unset=True)
    more = caps.pop("parameters", {})
    try:
        check_extension(caps, more)
        budget = changed_budget(run, caps)
        now = timezone.now()
        return _run(extend_run(run=run, user=request.user, budget=budget, parameters=more, now=now))
    except SubmissionError as error:  # the body is the budget
        every = ((field.removeprefix("budget."), reason) for field, reason in error.every)
        raise type(error).of(every) from None


@router.post(
    "/runs/{run_id}/again", response={201: RunOut, **_REFUSALS}, summary="Start a run again"
)
def again(
    request: AuthenticatedRequest,
    response: HttpResponse,
    run_id: str,
    payload: AgainIn = AgainIn.left_out(),
) -> Status[dict[str, object]]:
    """Start a run with the settings and kernel of an earlier one, and a new random seed.

    The body lists what to change, such as the language models or the budget. To repeat the same
    random choices, send the original run's `seed`.
    """
    changes = payload.dict(exclude_unset=True)
    run = _started(request, {**request_of(named_run(run_id, request.user)), **changes})
    response["Location"] = f"{request.path.rsplit('/', 2)[0]}/{run.pk}"
    return Status(201, _run(run))


def _started(request: AuthenticatedRequest, document: dict[str, Any]) -> Run:
    """The run that a document asks for; all that is wrong with it is refused at once."""
    faults = Faults()
    wanted = read_run_request(document, faults)
    return start_run(user=request.user, request=wanted, now=timezone.now(), faults=faults)


def _control(request: HttpRequest, run_id: str, act: Callable[..., Run]) -> dict[str, object]:
    return _run(act(run=named_run(run_id, request.user), user=request.user, now=timezone.now()))


def _run(run: Run) -> dict[str, Any]:
    now = timezone.now()
    listed = _listed(run, budgets([run])[run.pk], over_seeds([run]).get(run.pk), now)
    return listed | {
        "waiting_reason": run_waiting_reason(run, now),
        "confirmation": asdict(confirmation_of(run)),
    }


def _listed(
    run: Run, budget: dict[str, object], gain: OverSeed | None, now: datetime
) -> dict[str, object]:
    same = ("id", "name", "direction", "strategy", "private", "enters_best", "seed", "by_budget")
    more = ("seed_latency_ns", "created_at", "ended_at")
    return {
        **{name: getattr(run, name) for name in (*same, *more)},
        **run_summary(run, now),
        "url": run.get_absolute_url(),
        "task": run.task_version.task.slug,
        "task_version": run.task_version.number,
        "device": run.device_id,
        "agent": run.agent.name,
        "user": shown_name(run.user),
        "budget": budget,
        "over_seed": gain.value if gain else None,
        "best": run.best.number if run.best else None,
        "events": run.events_stored,
    }
