"""The API of challenges and their entries."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, Query, Router, Schema, Status

from gpu_runner.data.verdict import Direction, Verdict
from runs_app.core.api_body import Body, one_of
from runs_app.core.api_pages import ask_again, newest_first
from runs_app.core.errors import NotAllowed
from runs_app.core.work.result_state import COMPARED_WITH, compared_with
from runs_app.features.challenges.figures import (
    MEASURES,
    RANKING,
    Contender,
    EntryResult,
    TaskResult,
    contenders,
    entry_results,
    ranking_words,
)
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.features.challenges.selectors import (
    all_challenges,
    entries_of,
    find_challenge,
    find_entry,
)
from runs_app.features.challenges.services import (
    LONGEST_SETTING,
    MOST_TOKENS,
    MOST_USD,
    enter,
    finish,
    report,
)
from runs_app.submitting.api import Problem
from tasks_app.people import AuthenticatedRequest, shown_name

_KEPT = "Figures for hidden workloads are null until every kernel has been measured on them."


class EntryIn(Body):
    """Who enters a challenge."""

    agent: str = Field("", description="Author of the kernels; default: you.")
    setting: str = Field(
        "",
        max_length=LONGEST_SETTING,
        examples=["temperature 0.2"],
        description="A label for how the agent is set up. Another entry by the same agent with the"
        " same label counts as a repeat.",
    )
    model: str = Field("", description="The language model that the agent uses, if any.")


class ReportIn(Body):
    """What an entry has spent in total. Totals can't decrease; fields that you leave out don't
    change.
    """

    usd: float | None = Field(None, ge=0, le=MOST_USD, description="US dollars so far.")
    tokens: int | None = Field(None, ge=0, le=MOST_TOKENS, description="Tokens so far.")
    transcript: str | None = Field(
        None,
        description="What the agent did, at most 2 MiB; public once the challenge is closed.",
    )


class ChallengeListed(Schema):
    """A challenge, and the budget that each entry gets."""

    name: str = Field(examples=["autumn"], description="Its name in URLs.")
    title: str
    description: str
    url: str
    tasks: list[str]
    direction: str = Field(json_schema_extra=one_of(*Direction))
    device: str
    evaluations: int = Field(description="Evaluations per task.")
    wall_time_s: int = Field(description="How many seconds after entering you can submit.")
    usd: float | None = Field(description="Limit in US dollars, as reported; null if none.")
    starts_at: datetime
    ends_at: datetime
    closed_at: datetime | None = Field(description="When its ranked kernels became public.")
    open: bool = Field(description="Whether you can enter now.")


class MeasuresOut(Schema):
    """Figures over all tasks. Those for hidden workloads are null until every kernel has been
    measured on them.
    """

    correct: float | None = Field(description="Share of tasks solved on listed workloads.")
    hidden_correct: float | None = Field(
        description="Share of tasks also solved on hidden workloads."
    )
    kept_correct: float | None = Field(description="hidden_correct divided by correct.")
    fast: float | None = Field(description="Share of tasks solved faster than the best baseline.")
    hidden_fast: float | None = Field(description="Same as `fast`, but on unlisted sizes.")
    speedup: float | None = Field(
        description="Geometric mean of the speedups over the best baseline on listed sizes."
    )
    unlisted_speedup: float | None = Field(
        description="Geometric mean of the speedups over the best baseline on unlisted sizes."
    )
    score: float | None = Field(description="Geometric mean of the tasks' scores.")
    kept_speed: float | None = Field(description="Unlisted speedup divided by listed speedup.")


class SpreadOut(Schema):
    """A figure over repeats."""

    median: float
    low: float
    high: float
    repeats: int = Field(description="How many repeats this figure is based on.")


class ContenderOut(Schema):
    """An agent with one setting, over its repeats."""

    agent: str
    setting: str
    repeats: int
    measures: dict[str, SpreadOut | None] = Field(description=f"Same as for an entry. {_KEPT}")


class TaskOut(Schema):
    """One task of one entry."""

    task: str
    used: int
    left: int = Field(description="Evaluations left.")
    best_latency_ns: float | None = Field(description="Time of the fastest correct submission.")
    verdict: str = Field(
        description="Verdict of its ranked evaluation; empty until the entry has ended.",
        json_schema_extra=one_of("", *Verdict),
    )
    doubted: bool = Field(
        description="Whether a suspicion or audit keeps the ranked result from counting."
    )
    latency_ns: float | None = Field(description="Time in its ranked evaluation.")
    speedup: float | None = Field(description="Speedup over the best baseline on listed sizes.")
    unlisted_speedup: float | None
    compared_with: str = Field(description=COMPARED_WITH)


class EntryOut(Schema):
    """An entry, with its remaining budget and its results."""

    id: UUID
    challenge: str
    url: str
    agent: str
    setting: str
    repeat: int
    model: str
    user: str
    state: str = Field(
        description="running; ended: it accepts no more submissions; ranking: its best kernels are"
        " being measured, hidden workloads included; ranked: all were measured, or none was"
        " correct.",
        json_schema_extra=one_of(*Entry.State.values, RANKING),
    )
    reason: str = Field(description="Why it ended; empty while it runs.")
    final: bool = Field(description="Whether hidden workloads have been measured.")
    over: bool = Field(
        description="Whether it is ranked; if so, nothing more happens automatically."
    )
    ranking: str = Field(
        description="While ranking: how many kernels are left, and when it will be done.",
        examples=["1 of 3 kernels left to rank; done in about 40 s"],
    )
    started_at: datetime
    deadline_at: datetime
    ended_at: datetime | None
    usd: float | None = Field(description="As reported.")
    tokens: int | None = Field(description="As reported.")
    left_s: float = Field(description="Seconds until it ends automatically; 0 if it has ended.")
    left_usd: float | None = Field(description="US dollars left; null if there is no limit.")
    measures: MeasuresOut
    tasks: list[TaskOut]


class EntryCreated(EntryOut):
    """A new entry with its token."""

    token: str = Field(description="Send it like any other token. We show it only here.")


class ChallengeOut(ChallengeListed):
    """A challenge and its results."""

    entered: int = Field(description="Number of entries; a separate endpoint lists them.")
    contenders: list[ContenderOut] = Field(description="By agent and setting, best first.")


router = Router(tags=["challenges"])

_REFUSALS = dict.fromkeys((401, 403, 404, 409, 422, 429), Problem)


@router.get(
    "/challenges",
    response={200: list[ChallengeListed], 422: Problem},
    summary="Challenges, newest first",
)
def list_challenges(
    request: HttpRequest,
    response: HttpResponse,
    after: str = Query("", max_length=40),  # type: ignore[type-arg]
    limit: int = Query(20, ge=1, le=100),  # type: ignore[type-arg]
) -> list[dict[str, object]]:
    """Return all challenges."""
    rows = newest_first(all_challenges(), request, response, after=after, limit=limit)
    return [_listed(challenge) for challenge in rows]


@router.get(
    "/challenges/{slug}", response={200: ChallengeOut, 404: Problem}, summary="One challenge"
)
def show_challenge(request: HttpRequest, slug: str) -> dict[str, object]:
    """Return a challenge with the results of each agent and setting."""
    challenge = find_challenge(slug)
    results = entry_results(challenge, list(entries_of(challenge)))
    return {
        **_listed(challenge),
        "entered": len(results),
        "contenders": [_contender(each) for each in contenders(results)],
    }


@router.get(
    "/challenges/{slug}/entries",
    response={200: list[EntryOut], 404: Problem, 422: Problem},
    summary="A challenge's entries, newest first",
)
def list_entries(
    request: HttpRequest,
    response: HttpResponse,
    slug: str,
    after: str = Query("", max_length=40),  # type: ignore[type-arg]
    limit: int = Query(20, ge=1, le=100),  # type: ignore[type-arg]
) -> list[dict[str, object]]:
    """Return each entry's remaining budget and its results so far."""
    challenge = find_challenge(slug)
    rows = entries_of(challenge)
    page = newest_first(rows, request, response, after=after, limit=limit, by="started_at")
    return [_entry(result) for result in entry_results(challenge, page)]


@router.post(
    "/challenges/{slug}/entries",
    response={201: EntryCreated, **_REFUSALS},
    summary="Enter a challenge",
)
def create_entry(
    request: AuthenticatedRequest,
    response: HttpResponse,
    slug: str,
    payload: EntryIn = EntryIn.left_out(),
) -> Status[dict[str, object]]:
    """Begin an entry. Its time starts now, and its token is shown only here."""
    challenge = find_challenge(slug)
    entry, token = enter(
        challenge=challenge,
        user=request.user,
        agent=payload.agent,
        setting=payload.setting,
        language_model=payload.model,
        now=timezone.now(),
    )
    base = request.path.split("/challenges/", 1)[0]
    response["Location"] = f"{base}/entries/{entry.pk}"
    return Status(201, {**_entry_out(entry), "token": token})


@router.get("/entries/{entry_id}", response={200: EntryOut, 404: Problem}, summary="One entry")
def show_entry(request: HttpRequest, response: HttpResponse, entry_id: str) -> dict[str, object]:
    """Return an entry's remaining budget and its results so far.

    Once it has ended, and until it is `over`, `Retry-After` says how many seconds to wait before
    you ask again.
    """
    entry = find_entry(entry_id)
    shown = _entry_out(entry)
    if entry.ended_at and not shown["over"]:
        ask_again(response, entry.ended_at)
    return shown


@router.post(
    "/entries/{entry_id}/report",
    response={200: EntryOut, **_REFUSALS},
    summary="Report money, tokens and a transcript",
)
def create_report(
    request: AuthenticatedRequest, entry_id: str, payload: ReportIn = ReportIn.left_out()
) -> dict[str, object]:
    """Store the totals so far; fields that you leave out don't change."""
    entry = find_entry(entry_id)
    if entry.user_id != request.user.pk:
        raise NotAllowed("", "only an entry's owner can report for it")
    report(entry=entry, now=timezone.now(), **payload.dict())
    return _entry_out(find_entry(entry_id))


@router.post(
    "/entries/{entry_id}/finish", response={200: EntryOut, **_REFUSALS}, summary="End an entry"
)
def finish_entry(request: AuthenticatedRequest, entry_id: str) -> dict[str, object]:
    """Accept no more submissions for the entry, and rank its best correct kernel for each task."""
    entry = finish(entry=find_entry(entry_id), user=request.user, now=timezone.now())
    return _entry_out(entry)


def _listed(challenge: Challenge) -> dict[str, object]:
    same = ("description", "direction", "evaluations", "wall_time_s", "usd")
    times = ("starts_at", "ends_at", "closed_at")
    versions = challenge.versions.select_related("task").order_by("task__slug")
    return {
        **{name: getattr(challenge, name) for name in (*same, *times)},
        "name": challenge.slug,
        "title": challenge.name,
        "url": challenge.get_absolute_url(),
        "device": challenge.device_id,
        "open": challenge.is_open(timezone.now()),
        "tasks": [version.task.slug for version in versions],
    }


def _contender(contender: Contender) -> dict[str, object]:
    spreads = {measure.name: contender.spread(measure.name) for measure in MEASURES}
    return {
        "agent": contender.agent,
        "setting": contender.setting,
        "repeats": len(contender.results),
        "measures": {
            name: None if each is None else asdict(each) for name, each in spreads.items()
        },
    }


def _entry_out(entry: Entry) -> dict[str, object]:
    return _entry(entry_results(entry.challenge, [entry])[0])


def _entry(result: EntryResult) -> dict[str, object]:
    entry, challenge, now = result.entry, result.entry.challenge, timezone.now()
    same = ("id", "setting", "repeat", "reason", "usd", "tokens")
    times = ("started_at", "deadline_at", "ended_at")
    return {
        **{name: getattr(entry, name) for name in (*same, *times)},
        "challenge": challenge.slug,
        "url": entry.get_absolute_url(),
        "agent": entry.agent.name,
        "model": entry.language_model.name if entry.language_model else "",
        "user": shown_name(entry.user),
        "ranking": ranking_words(result, now),
        "left_s": entry.left_s(now),
        "left_usd": entry.left_usd,
        "state": result.state,
        "final": result.is_final,
        "over": result.state == Entry.State.RANKED,
        "measures": {measure.name: measure.read(result) for measure in MEASURES},
        "tasks": [_task(task, challenge.evaluations) for task in result.tasks],
    }


def _task(task: TaskResult, budget: int) -> dict[str, object]:
    return {
        "task": task.version.task.slug,
        "used": task.used,
        "left": max(budget - task.used, 0),
        "best_latency_ns": task.best_latency_ns,
        "verdict": task.ranked.verdict if task.ranked else "",
        "doubted": task.is_doubted,
        "latency_ns": task.ranked.latency_ns if task.ranked else None,
        "speedup": task.speedup,
        "unlisted_speedup": task.unlisted_speedup,
        "compared_with": compared_with(task.shown) if task.shown else "",
    }
