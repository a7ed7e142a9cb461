"""The API's view of challenges and their entries."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Status

from runs_app.core.api_pages import ask_again, newest_first
from runs_app.core.errors import NotAllowed
from runs_app.features.challenges.api_schemas import (
    ChallengeListed,
    ChallengeOut,
    EntryCreated,
    EntryIn,
    EntryOut,
    ReportIn,
)
from runs_app.features.challenges.figures import (
    MEASURES,
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
from runs_app.features.challenges.services import enter, finish, report
from runs_app.submitting.api import Problem
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
) -> list[dict[str, object]]:
    """Answer with all challenges."""
    rows = newest_first(all_challenges(), request, response, after=after, limit=limit)
    return [_listed(challenge) for challenge in rows]


@router.get(
    "/challenges/{slug}", response={200: ChallengeOut, 404: Problem}, summary="One challenge"
)
def show_challenge(request: HttpRequest, slug: str) -> dict[str, object]:
    """Answer with a challenge, and what came of each agent and setting."""
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
    """Answer with what each entry has left, and what came of it so far."""
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
    """Begin an entry: its time runs from now, and its token is told only here."""
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
    """Answer with what an entry has left, and what came of it so far.

    After its end `Retry-After` says how many seconds to wait before you ask again, until `over`.
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
    """Store the totals so far; what is left out stays as it is."""
    entry = find_entry(entry_id)
    if entry.user_id != request.user.pk:
        raise NotAllowed("", "only its owner can report for an entry")
    report(
        entry=entry,
        usd=payload.usd,
        tokens=payload.tokens,
        transcript=payload.transcript,
        now=timezone.now(),
    )
    return _entry_out(find_entry(entry_id))


@router.post(
    "/entries/{entry_id}/finish", response={200: EntryOut, **_REFUSALS}, summary="End an entry"
)
def finish_entry(request: AuthenticatedRequest, entry_id: str) -> dict[str, object]:
    """Take no more submissions; the best correct kernel of each task is ranked."""
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
            name: None
            if each is None
            else {"median": each.median, "low": each.low, "high": each.high, "repeats": each.count}
            for name, each in spreads.items()
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
    }
