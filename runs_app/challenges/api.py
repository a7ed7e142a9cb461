"""The API's view of challenges and their entries."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Status

from runs_app.api_pages import newest_first
from runs_app.challenges.api_schemas import (
    ChallengeListed,
    ChallengeOut,
    EntryCreated,
    EntryIn,
    EntryOut,
    ReportIn,
)
from runs_app.challenges.figures import (
    MEASURES,
    Contender,
    EntryResult,
    TaskResult,
    contenders,
    entry_results,
)
from runs_app.challenges.selectors import all_challenges, entries_of, entry_rows, find_challenge
from runs_app.challenges.services import enter, finish, report
from runs_app.errors import NotAllowed
from runs_app.models import Challenge, Entry
from runs_app.submissions.api import Problem
from tasks_app.people import AuthenticatedRequest, shown_name

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
) -> list[dict[str, Any]]:
    """Answer with all challenges."""
    rows = newest_first(all_challenges(), request, response, after=after, limit=limit)
    return [_listed(challenge) for challenge in rows]


@router.get(
    "/challenges/{slug}", response={200: ChallengeOut, 404: Problem}, summary="One challenge"
)
def show_challenge(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Answer with a challenge, and what came of each agent and setting."""
    challenge = _challenge(slug)
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
) -> list[dict[str, Any]]:
    """Answer with what each entry has left, and what came of it so far."""
    challenge = _challenge(slug)
    rows = entries_of(challenge)
    page = newest_first(rows, request, response, after=after, limit=limit, by="started_at")
    return [_entry(result) for result in entry_results(challenge, page)]


@router.post(
    "/challenges/{slug}/entries",
    response={201: EntryCreated, **_REFUSALS},
    summary="Enter a challenge",
)
def create_entry(
    request: AuthenticatedRequest, response: HttpResponse, slug: str, payload: EntryIn
) -> Status[dict[str, Any]]:
    """Begin an entry: its time runs from now, and its token is told only here."""
    challenge = _challenge(slug)
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
def show_entry(request: HttpRequest, entry_id: str) -> dict[str, Any]:
    """Answer with what an entry has left, and what came of it so far."""
    return _entry_out(_find(entry_id))


@router.post(
    "/entries/{entry_id}/report",
    response={200: EntryOut, **_REFUSALS},
    summary="Report money, tokens and a transcript",
)
def create_report(
    request: AuthenticatedRequest, entry_id: str, payload: ReportIn
) -> dict[str, Any]:
    """Store the totals so far; what is left out stays as it is."""
    entry = _find(entry_id)
    if entry.user_id != request.user.pk:
        raise NotAllowed("", "only its owner reports for an entry")
    report(
        entry=entry,
        usd=payload.usd,
        tokens=payload.tokens,
        transcript=payload.transcript,
        now=timezone.now(),
    )
    return _entry_out(_find(entry_id))


@router.post(
    "/entries/{entry_id}/finish", response={200: EntryOut, **_REFUSALS}, summary="End an entry"
)
def finish_entry(request: AuthenticatedRequest, entry_id: str) -> dict[str, Any]:
    """Take no more submissions; the best correct kernel of each task is ranked."""
    entry = finish(entry=_find(entry_id), user=request.user, now=timezone.now())
    return _entry_out(entry)


def _challenge(slug: str) -> Challenge:
    challenge = find_challenge(slug)
    if challenge is None:
        raise Http404(f"there is no challenge {slug[:100]!r}")
    return challenge


def _find(entry_id: str) -> Entry:
    try:
        entry = entry_rows().filter(pk=UUID(entry_id)).first()
    except ValueError:
        raise Http404(f"{entry_id!r} is no id of an entry") from None
    if entry is None:
        raise Http404(f"there is no entry {entry_id!r}")
    return entry


def _listed(challenge: Challenge) -> dict[str, Any]:
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


def _contender(contender: Contender) -> dict[str, Any]:
    spreads = {measure.name: contender.spread(measure.read) for measure in MEASURES}
    return {
        "agent": contender.agent,
        "setting": contender.setting,
        "repeats": len(contender.results),
        "measures": {
            name: None
            if each is None
            else {"median": each.median, "low": each.low, "high": each.high, "repeats": each.count}
            for name, each in spreads.items()
        },
    }


def _entry_out(entry: Entry) -> dict[str, Any]:
    return _entry(entry_results(entry.challenge, [entry])[0])


def _entry(result: EntryResult) -> dict[str, Any]:
    entry, challenge = result.entry, result.entry.challenge
    same = ("id", "setting", "repeat", "state", "reason", "usd", "tokens")
    times = ("started_at", "deadline_at", "ended_at")
    return {
        **{name: getattr(entry, name) for name in (*same, *times)},
        "challenge": challenge.slug,
        "url": entry.get_absolute_url(),
        "agent": entry.agent.name,
        "model": entry.language_model.name if entry.language_model else "",
        "user": shown_name(entry.user),
        "left_s": entry.left_s(timezone.now()),
        "left_usd": entry.left_usd,
        "final": result.is_final,
        "measures": {measure.name: measure.read(result) for measure in MEASURES},
        "tasks": [_task(task, challenge.evaluations) for task in result.tasks],
    }


def _task(task: TaskResult, budget: int) -> dict[str, Any]:
    return {
        "task": task.version.task.slug,
        "used": task.used,
        "left": max(budget - task.used, 0),
        "best_latency_ns": task.best_latency_ns,
        "verdict": task.ranked.verdict if task.ranked else "",
        "doubted": task.is_doubted,
        "latency_ns": task.ranked.latency_ns if task.ranked else None,
        "speedup": task.speedup,
        "hidden_speedup": task.hidden_speedup,
    }
