"""The API's view of optimisation runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, Query, Router, Schema, Status
from pydantic import StrictBool, StrictFloat, StrictInt

from gpu_runner.data.verdict import Direction
from runs_app.api_body import Body, between, one_of
from runs_app.api_pages import WaitIn, newest_first
from runs_app.errors import SubmissionError
from runs_app.evolve.budget import MIN_OUTPUT_TOKENS
from runs_app.evolve.config import MOST, MOST_ANSWER_TOKENS, ProfileMode
from runs_app.evolve.strategies import STRATEGIES
from runs_app.messaging import broadcast
from runs_app.models import Candidate, Run
from runs_app.optimisation.disclosure import public_candidate
from runs_app.optimisation.selectors.runs import (
    EVENTS_AT_ONCE,
    filtered_runs,
    find_candidate,
    find_run,
    run_events,
    run_summary,
    run_waiting_reason,
)
from runs_app.optimisation.selectors.runs import (
    budgets as run_budgets,
)
from runs_app.optimisation.services.control import (
    changed_budget,
    extend_run,
    pause_run,
    resume_run,
    stop_run,
)
from runs_app.optimisation.services.request import (
    HOTTEST,
    MOST_AT_ONCE,
    MOST_SURVIVORS,
    NAME_LENGTH,
    SEED_KERNELS,
    SEED_LIMIT,
    read_run_request,
)
from runs_app.optimisation.services.start import start_run
from runs_app.submissions.api import Problem
from tasks_app.people import AuthenticatedRequest, shown_name

router = Router(tags=["runs"])

_MOST_LISTED = 200


class BudgetIn(Body):
    """Caps of a run; null is no cap, 0 leaves nothing to spend. One cap at least must be given.

    An extension changes the caps that it names; null removes one, and the others stay.
    """

    usd: StrictFloat | None = Field(None, examples=[2.0], json_schema_extra=between(0, MOST["usd"]))
    tokens: StrictInt | None = Field(
        None, examples=[2_000_000], json_schema_extra=between(0, MOST["tokens"])
    )
    evaluations: StrictInt | None = Field(
        None, examples=[60], json_schema_extra=between(0, MOST["evaluations"])
    )
    wall_time_s: StrictInt | None = Field(
        None,
        examples=[3600],
        description="Seconds of running; pauses do not count.",
        json_schema_extra=between(0, MOST["wall_time_s"]),
    )


class VerifiersIn(Body):
    """Language-model judges that vote on a candidate before it is measured."""

    names: list[str] = Field(
        [], examples=[["compile", "memory", "numerics"]], description="None switches them off."
    )
    soft: StrictBool = Field(True, description="Measure the best `survivors` of a generation.")
    threshold: StrictFloat = Field(
        0.5, description="If not soft: drop candidates with a lower score."
    )
    survivors: StrictInt = Field(4, json_schema_extra=between(1, MOST_SURVIVORS))
    reflect: StrictBool = Field(True, description="Each verifier looks at its vote a second time.")
    model: str = Field("", description="Empty: the language model that wrote the candidate.")


class RunIn(Body):
    """An optimisation run to be started."""

    task: str = Field(examples=["matrix_mul"])
    device: str = Field("", examples=["cpu"], description="A device from /queue; empty: the CPU.")
    strategy: str = Field(examples=["autotune"], json_schema_extra=one_of(*STRATEGIES))
    direction: str = Field(
        Direction.FORWARD.value,
        description="forward or backward",
        json_schema_extra=one_of(*Direction),
    )
    parameters: dict[str, Any] = Field({}, description="Of the strategy, named as in its paper.")
    models: list[str] = Field([], description="Language models; see /language-models/.")
    temperatures: list[StrictFloat] = Field(
        [0.5, 0.75, 1.0],
        json_schema_extra={"minItems": 1, "items": {"type": "number"} | between(0, HOTTEST)},
    )
    max_tokens: StrictInt = Field(
        8192,
        description="Of one answer.",
        json_schema_extra=between(MIN_OUTPUT_TOKENS, MOST_ANSWER_TOKENS),
    )
    budget: BudgetIn | None = Field(None, description="Left out: 60 evaluations, an hour, 2 USD.")
    verifiers: VerifiersIn | None = Field(None, description="Left out: no verifier.")
    profile: str = Field(
        "filtered",
        description="What prompts show: none, filtered or full.",
        json_schema_extra=one_of(*ProfileMode),
    )
    concurrent_asks: StrictInt = Field(4, json_schema_extra=between(1, MOST_AT_ONCE))
    concurrent_evaluations: StrictInt = Field(4, json_schema_extra=between(1, MOST_AT_ONCE))
    seed_kernel: str = Field(
        "",
        description="naive, best, own (with `source`) or none; empty: naive if there is one.",
        json_schema_extra=one_of(*SEED_KERNELS),
    )
    source: str = ""
    seed: StrictInt | None = Field(
        None,
        description="Of the run's randomness; drawn if left out.",
        json_schema_extra=between(0, SEED_LIMIT - 1),
    )
    agent: str = Field("", description='Empty: "kbench-" and the strategy.')
    name: str = Field("", json_schema_extra={"maxLength": NAME_LENGTH})
    private: StrictBool = Field(False, description="Seen by you and admins only.")
    enters_best: StrictBool = Field(False, description="Submit the best candidate at the end.")


class RunFilters(Schema):
    """Which runs are asked for; every parameter may be left out."""

    task: str = ""
    device: str = ""
    strategy: str = Field("", json_schema_extra=one_of("", *STRATEGIES))
    status: str = Field("", json_schema_extra=one_of("", *Run.Status.values))
    limit: int = Field(50, ge=1, le=_MOST_LISTED)
    after: str = Field("", description="Id of the last one that you have; see the header Link.")


class RunListed(Schema):
    """A run with what it has spent and found so far."""

    id: UUID
    url: str = Field(examples=["/runs/0b7c1f5e-5a0e-4c2f-9a35-2f0c7f2f8a11/"])
    name: str
    task: str
    task_version: int
    direction: str
    device: str
    strategy: str
    agent: str
    user: str
    private: bool
    enters_best: bool
    seed: int
    status: str = Field(examples=["RUNNING"], json_schema_extra=one_of(*Run.Status.values))
    reason: str = Field(description="Why it is paused, or why it ended.")
    by_budget: bool = Field(description="Its budget ended it: an extension lets it go on.")
    usd: float
    tokens: int
    evaluations: int
    active_s: float
    candidates: int
    budget: dict[str, Any]
    seed_latency_ns: float | None
    best_latency_ns: float | None
    best: int | None = Field(description="Number of the best candidate.")
    events: int = Field(description="Number of the newest event.")
    created_at: datetime
    ended_at: datetime | None


class RunOut(RunListed):
    """A run by itself."""

    waiting_reason: str = Field(description="Why it does not get on; empty if it does.")


class EventOut(Schema):
    """An event of a run: an event, or what a person or the site did."""

    seq: int = Field(examples=[3])
    kind: str = Field(examples=["measured"])
    at: datetime
    payload: dict[str, Any]


class EventsOut(Schema):
    """Events in their order, and the number of the newest there is."""

    events: list[EventOut]
    newest: int


class CandidateOut(Schema):
    """A candidate of a run, with its source and what hardware said of it."""

    number: int
    source: str
    edit: str
    parents: list[int]
    generation: int
    slot: int
    island: int
    model: str
    title: str
    knobs: dict[str, str]
    techniques: list[str]
    state: str = Field(examples=["measured"])
    reason: str
    votes: dict[str, bool]
    verdict: str
    latency_ns: float | None
    speedup: float | None
    floor_fraction: float | None
    bottleneck: str
    feedback: dict[str, Any] | None
    trial: UUID | None = Field(description="The submission whose evaluations measured it.")
    entry: UUID | None = Field(description="The submission by which it was entered.")


_REFUSALS = dict.fromkeys((401, 403, 404, 409, 422, 429), Problem)


@router.post("/runs", response={201: RunOut, **_REFUSALS}, summary="Start a run")
def create_run(
    request: AuthenticatedRequest, response: HttpResponse, payload: RunIn
) -> Status[dict[str, Any]]:
    """Start an optimisation run."""
    document = payload.dict()
    for name in ("budget", "verifiers"):
        if document[name] is None:
            del document[name]
    wanted = read_run_request(document)
    run = start_run(user=request.user, request=wanted, now=timezone.now())
    response["Location"] = f"{request.path}/{run.pk}"
    return Status(201, _run(run))


@router.get("/runs", response={200: list[RunListed], 422: Problem}, summary="Runs, newest first")
def list_runs(
    request: HttpRequest, response: HttpResponse, filters: Query[RunFilters]
) -> list[dict[str, Any]]:
    """Answer with the runs that you may see."""
    given = {name: getattr(filters, name) for name in ("task", "device", "strategy", "status")}
    for name, known in (("strategy", list(STRATEGIES)), ("status", Run.Status.values)):
        if given[name] and given[name] not in known:
            raise SubmissionError(name, f"{given[name][:100]!r} is not one of {', '.join(known)}")
    rows = filtered_runs(request.user, given)
    runs = newest_first(rows, request, response, after=filters.after, limit=filters.limit)
    now, budgets = timezone.now(), run_budgets(runs)
    return [_listed(run, budgets[run.pk], now) for run in runs]


@router.get("/runs/{run_id}", response={200: RunOut, 404: Problem}, summary="One run")
def show_run(request: HttpRequest, run_id: str, waiting: Query[WaitIn]) -> dict[str, Any]:
    """Answer with a run."""
    return _run(_find(request, run_id))


@router.get(
    "/runs/{run_id}/events",
    response={200: EventsOut, 404: Problem, 422: Problem},
    summary="What happened in a run",
)
def show_events(
    request: HttpRequest,
    run_id: str,
    since: int = Query(0, ge=0, lt=2**31),  # type: ignore[type-arg]
    limit: int = Query(EVENTS_AT_ONCE, ge=1, le=EVENTS_AT_ONCE),  # type: ignore[type-arg]
) -> dict[str, Any]:
    """Answer with the events after number `since`: the same that the socket sends."""
    run = _find(request, run_id)
    hidden = run.task_version.hidden_names
    found = run_events(run, since, limit)
    return {
        "events": [broadcast.run_message(event, {}, hidden) for event in found],
        "newest": run.events_stored,
    }


@router.get(
    "/runs/{run_id}/candidates/{number}",
    response={200: CandidateOut, 404: Problem, 422: Problem},
    summary="One candidate",
)
def show_candidate(request: HttpRequest, run_id: str, number: int) -> dict[str, Any]:
    """Answer with a candidate of a run."""
    run = _find(request, run_id)
    candidate = find_candidate(run, number) if 0 < number < 2**31 else None
    if candidate is None:
        raise Http404(f"this run has no candidate {number}")
    return _candidate(public_candidate(candidate, run.task_version.hidden_names))


@router.post("/runs/{run_id}/pause", response={200: RunOut, **_REFUSALS}, summary="Pause a run")
def pause(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Begin nothing new; what was sent or queued is awaited and kept."""
    return _control(request, run_id, pause_run)


@router.post("/runs/{run_id}/resume", response={200: RunOut, **_REFUSALS}, summary="Resume a run")
def resume(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Go on with a paused run."""
    return _control(request, run_id, resume_run)


@router.post("/runs/{run_id}/stop", response={200: RunOut, **_REFUSALS}, summary="Stop a run")
def stop(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """End a run for good."""
    return _control(request, run_id, stop_run)


@router.post("/runs/{run_id}/extend", response={200: RunOut, **_REFUSALS}, summary="Extend a run")
def extend(request: AuthenticatedRequest, run_id: str, payload: BudgetIn) -> dict[str, Any]:
    """Change the caps that are named: a number in place of the old one, null for no cap.

    A run that its budget had ended goes on, if every cap leaves something to spend. A cap below
    what a run has spent ends it when nothing is under way.
    """
    run = _find(request, run_id)
    try:
        budget = changed_budget(run, payload.dict(exclude_unset=True))
        return _run(extend_run(run=run, user=request.user, budget=budget, now=timezone.now()))
    except SubmissionError as error:  # the body is the budget
        raise type(error)(error.field.removeprefix("budget."), error.reason) from None


def _control(request: HttpRequest, run_id: str, act: Callable[..., Run]) -> dict[str, Any]:
    return _run(act(run=_find(request, run_id), user=request.user, now=timezone.now()))


def _find(request: HttpRequest, run_id: str) -> Run:
    try:
        run = find_run(UUID(run_id), request.user)
    except ValueError:
        raise Http404(f"{run_id!r} is no id of a run") from None
    if run is None:
        raise Http404(f"there is no run {run_id!r} that you may see")
    return run


def _run(run: Run) -> dict[str, Any]:
    now = timezone.now()
    listed = _listed(run, run_budgets([run])[run.pk], now)
    return listed | {"waiting_reason": run_waiting_reason(run, now)}


def _listed(run: Run, budget: dict[str, Any], now: datetime) -> dict[str, Any]:
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
        "best": run.best.number if run.best else None,
        "events": run.events_stored,
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    same = ("number", "source", "edit", "parents", "generation", "slot", "island", "model")
    more = ("title", "knobs", "techniques", "state", "reason", "votes", "verdict", "latency_ns")
    rest = ("speedup", "floor_fraction", "bottleneck", "feedback")
    return {
        **{name: getattr(candidate, name) for name in (*same, *more, *rest)},
        "trial": candidate.submission_id,
        "entry": candidate.entry_id,
    }
