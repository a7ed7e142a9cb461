"""Says what events changed, for a run's live page: rows as they are now, or after each event."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Candidate as StoredCandidate
from runs_app.models import Run, RunEvent
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Place
from runs_app.optimiser.evolve.evaluations import LAST_MODES, RUN_ENDED, is_refusal, says_nothing
from runs_app.optimiser.evolve.history import Candidate, CandidateState, History, Question
from runs_app.optimiser.evolve.strategies.cudamaster import REPLACED
from runs_app.optimiser.selectors.compared import baseline_of
from runs_app.optimiser.selectors.confirmation import ELSEWHERE, submitted_elsewhere
from runs_app.optimiser.selectors.runs import active_s
from runs_app.optimiser.services.history import RunDetails, event_of, stored_questions
from tasks_app.disclosure import public_value

_SHOWN_LINES = 60
_AT_ONCE = 2000
_STATUS_AFTER = {
    "started": Run.Status.RUNNING,
    "resumed": Run.Status.RUNNING,
    "paused": Run.Status.PAUSED,
    "stopped": Run.Status.STOPPED,
    "finished": Run.Status.FINISHED,
}
_OF_CANDIDATES = (
    *("number", "edit", "parents", "model", "title", "knobs", "techniques", "state", "reason"),
    *("votes", "verdict", "latency_ns", "spread", "floor_fraction", "bottleneck"),
)
_OF_CALLS = (
    *("number", "role", "model", "verifier", "about", "state"),
    *("worst_usd", "worst_tokens", "cost_usd", "tokens"),
)
_FREE_TEXT = {"title", "reason", "knobs", "techniques", "text"}

Change = dict[str, Any]
"""A JSON object: `seq`, `at`, `run`, `candidates`, `calls` and `lines`; times in ms since 1970."""


def change_of(run: Run, rows: Iterable[RunEvent], now: datetime) -> Change:
    """What these events of a run changed, with the values that hold now."""
    last: RunEvent | None = None
    candidates: dict[int, dict[str, object]] = {}
    calls: set[int] = set()
    extension: dict[str, object] = {}
    telling: deque[RunEvent] = deque(maxlen=_SHOWN_LINES)
    for last in rows:
        if (number := _candidate_of(last)) is not None:
            candidates.setdefault(number, {}).update(_said(last))
        if (number := _call_of(last)) is not None:
            calls.add(number)
        if last.kind == "extended":
            extension = {"budget": last.payload["budget"]}
        if _tells(last):
            telling.append(last)
    questions = {call.number: call for call in stored_questions(run, calls)}
    asked_at = dict(run.calls.filter(number__in=calls).values_list("number", "created_at"))
    shown = run.candidates.filter(number__in=candidates).defer("source", "feedback")
    change = {
        "seq": last.seq if last else 0,
        "at": _ms(last.created_at if last else now),
        "run": {
            "status": run.status,
            "reason": run.reason,
            "evaluations": run.evaluations,
            "active_s": active_s(run, now),
            "searching": run.resumed_at is not None and run.searched_at is None,
            "best": run.best.number if run.best else None,
            **(_baseline(run) if any("search_ns" in said for said in candidates.values()) else {}),
            **extension,
        },
        "candidates": [
            _candidate(row, row, candidates[row.number] | _more(row))
            for row in shown.order_by("number")
        ],
        "calls": [_call(call, asked_at[number]) for number, call in questions.items()],
        "lines": [line for row in telling if (line := _line(run, row, questions))],
    }
    return _public(change, run)


def replayed(run: Run, since: int) -> Iterator[Change]:
    """What each event after number `since` changed, from replaying the run's history."""
    past = _Past(run)
    for row in run.events.order_by("seq").iterator(_AT_ONCE):
        change = past.take(row)
        if row.seq > since:
            yield _public(change, run)


class _Past:
    """A run as it was after some of its events."""

    def __init__(self, run: Run) -> None:
        self._stored = run
        self._history = History(RunDetails(run))
        self._baseline = _baseline(run)
        self._first_budget = run.config.get("budget", {})
        self._status, self._reason = Run.Status.RUNNING, ""
        self._active_s = 0.0
        self._running_since: datetime | None = None
        self._more: dict[int, dict[str, Any]] = {}  # by candidate: what the history leaves out
        self._asked_at: dict[int, datetime] = {}
        self._shown: dict[tuple[str, int], dict[str, object]] = {}

    def take(self, row: RunEvent) -> Change:
        """Apply the next event, and return only what it changed."""
        if events.is_known(row.kind):
            self._history.apply(event_of(row.kind, row.payload))
        calls = self._history.questions
        line = _line(self._stored, row, calls)
        change: Change = {"seq": row.seq, "at": _ms(row.created_at), "candidates": [], "calls": []}
        change |= {"run": self._news("run", 0, self._run(row)), "lines": [line] if line else []}
        if (number := _candidate_of(row)) is not None:
            candidate = self._history.candidates[number]
            self._note(row, candidate)
            shown = _candidate(candidate, candidate.place, self._more[number])
            change["candidates"] = [self._news("candidate", number, shown)]
        if (number := _call_of(row)) is not None:
            asked_at = self._asked_at.setdefault(number, row.created_at)
            change["calls"] = [self._news("call", number, _call(calls[number], asked_at))]
        return change

    def _note(self, row: RunEvent, candidate: Candidate) -> None:
        first = {"at": _ms(row.created_at), "best": False, "begun": False}
        more = self._more.setdefault(candidate.number, first)
        more |= _said(row)
        more["best"] |= bool(row.payload.get("best"))
        more["begun"] |= row.kind == "measuring"
        if row.kind == "measured" and row.payload["mode"] in candidate.measured:
            more["measured_at"] = _ms(row.created_at)

    def _run(self, row: RunEvent) -> dict[str, object]:
        self._status = _STATUS_AFTER.get(row.kind, self._status)
        if self._status == Run.Status.FINISHED and self._history.finished is None:
            self._status = Run.Status.RUNNING  # it was extended
        if row.kind in _STATUS_AFTER:
            self._reason = row.payload.get("reason", "")
        if self._running_since is not None:
            self._active_s += (row.created_at - self._running_since).total_seconds()
        searches = self._status == Run.Status.RUNNING and self._history.searched is None
        self._running_since = row.created_at if searches else None
        budget, best = self._history.budget, self._history.best
        return {
            "status": self._status,
            "reason": self._reason,
            "evaluations": self._history.told.begun,
            "active_s": self._active_s,
            "searching": searches,
            "best": best.number if best else None,
            **self._baseline,
            "budget": codec.encode(budget) if budget else self._first_budget,
        }

    def _news(self, kind: str, number: int, row: dict[str, object]) -> dict[str, object]:
        known = self._shown.get((kind, number), {})
        self._shown[kind, number] = row
        news = {key: each for key, each in row.items() if key not in known or known[key] != each}
        return {**news, "number": number}


def _candidate(
    row: Candidate | StoredCandidate, place: Place | StoredCandidate, more: dict[str, object]
) -> dict[str, object]:
    is_replaced = row.state == CandidateState.DROPPED and row.reason.startswith(REPLACED)
    return {
        **{name: getattr(row, name) for name in _OF_CANDIDATES},
        "generation": place.generation,
        "island": place.island,
        "votes": dict(row.votes),
        "measuring": bool(row.measuring),
        "replaced": is_replaced,
        **more,
        **({"ranked_ns": row.latency_ns} if "ranked_ns" in more else {}),
    }


def _baseline(run: Run) -> dict[str, object]:
    """The baseline of now, over which speedups are shown."""
    baseline = baseline_of(run)
    return {
        "baseline_ns": baseline.ns if baseline else None,
        "baseline_name": baseline.name if baseline else "",
    }


def _more(row: StoredCandidate) -> dict[str, object]:
    told = {"measured_at": _ms(row.measured_at)} if row.measured_at else {}
    begun = row.submission_id is not None
    return {"at": _ms(row.created_at), "best": row.was_best, "begun": begun, **told}


def _call(row: Question, at: datetime) -> dict[str, object]:
    shown = {name: getattr(row, name) for name in _OF_CALLS}
    return {**shown, "unusable": bool(row.problem), "at": _ms(at)}


def _candidate_of(row: RunEvent) -> int | None:
    """The number of the candidate that an event changes, or None."""
    if row.kind == "drafted":
        return int(row.payload["number"])
    changes = row.kind in ("voted", "dropped", "measuring", "measured")
    return int(row.payload["candidate"]) if changes else None


def _call_of(row: RunEvent) -> int | None:
    """The number of the call that an event changes, or None."""
    key = {"asked": "number", "answered": "ask", "failed": "ask"}.get(row.kind)
    return None if key is None else int(row.payload[key])


def _said(row: RunEvent) -> dict[str, object]:
    """What an evaluation alone tells: its time in the search or ranked, or that it is too noisy."""
    if row.kind != "measured":
        return {}
    payload = row.payload
    if payload["mode"] == Mode.RANKED:
        return {"noisy": says_nothing(payload["verdict"]), **_ranked(payload)}
    if payload["mode"] in LAST_MODES:
        return _ranked(payload)
    if payload["verdict"] != Verdict.CORRECT:
        return {}
    return {"search_ns": payload.get("latency_ns"), "search_spread": payload.get("spread")}


def _ranked(payload: Mapping[str, Any]) -> dict[str, object]:
    """That the candidate's time isn't of the search any more; `_candidate` knows which one it is.

    An audit that took longer replaces the ranked time, in the run's history and in all its words.
    """
    is_timed = payload["verdict"] == Verdict.CORRECT and payload.get("latency_ns")
    return {"ranked_ns": payload["latency_ns"]} if is_timed else {}


_WORDS = {
    "resumed": "Resumed{by}",
    "stopped": "Stopped{by}",
    "started": "Started{by}",
    "searched": "The search has ended: {reason}",
    "finished": "Finished: {reason}",
    "briefed": "The task or its device was measured again; prompts use the new figures from now on",
    "entered": "Candidate {candidate} was submitted",
    "note": "{text}",
}


def _tells(row: RunEvent) -> bool:
    """Whether the page says in words that this event happened."""
    match row.kind:
        case "answered":
            return bool(row.payload.get("problem"))
        case "measured":
            payload = row.payload
            return payload["verdict"] == Verdict.SYSTEM_ERROR or payload["mode"] in LAST_MODES
        case kind:
            return kind in _WORDS or kind in ("failed", "paused", "chosen", "extended")


def _line(run: Run, row: RunEvent, calls: Mapping[int, Question]) -> dict[str, object] | None:
    """An event in words; None if the rows already show it."""
    if not _tells(row):
        return None
    text, is_bad = _words(row.kind, row.payload, calls)
    if row.kind == "entered" and submitted_elsewhere(run, row.payload["candidate"]):
        text = f"Candidate {row.payload['candidate']} {ELSEWHERE}"
    line = {"at": _ms(row.created_at), "text": text, "bad": is_bad, "call": _call_of(row)}
    return line if text else None


def _words(
    kind: str, payload: Mapping[str, Any], calls: Mapping[int, Question]
) -> tuple[str, bool]:
    """The words, and whether something went wrong."""
    by = f" by {payload['by']}" if payload.get("by") else ""
    reason = payload.get("reason") or payload.get("problem", "")
    match kind:
        case "paused":
            return (f"Paused{by}" if by or not reason else f"Paused: {reason}"), False
        case "chosen":
            proof = "ranked" if payload["is_ranked"] else "not ranked"
            proof += " and audited" if payload["is_audited"] else ""
            return f"Candidate {payload['candidate']} is the best, {proof}: {reason}", False
        case "extended":
            more = ", ".join(f"{key} {each}" for key, each in payload["parameters"].items())
            return (f"Extended: {more}" if more else "The budget was changed"), False
        case "answered" | "failed":
            call = calls[payload["ask"]]
            return f"Call {call.number} ({call.role}, {call.model}): {reason}", True
        case "measured":
            return _words_of_evaluation(payload, reason)
        case _:
            given = {"candidate": "", "text": "", **payload, "by": by, "reason": reason}
            return _WORDS[kind].format(**given), False


def _words_of_evaluation(payload: Mapping[str, Any], reason: str) -> tuple[str, bool]:
    number, verdict = payload["candidate"], payload["verdict"]
    if verdict == Verdict.SYSTEM_ERROR:
        is_cancelled = reason.endswith(RUN_ENDED)
        what = "canceled" if is_cancelled else "lost"
        why = f": {reason}" if reason else ""
        return f"The evaluation of candidate {number} was {what}{why}", not is_cancelled
    how = "audited" if payload["mode"] == Mode.AUDIT else "ranked"
    is_refused = is_refusal(verdict)
    how = f"refused when it was {how}" if is_refused else how
    why = "it is correct" if verdict == Verdict.CORRECT else reason or verdict
    return f"Candidate {number} was {how}: {why}", is_refused


def _public(change: Change, run: Run) -> Change:
    """The change without names of hidden workloads, which only these free texts could contain."""
    hidden = run.task_version.hidden_names
    for row in (change["run"], *change["candidates"], *change["lines"]):
        for name in _FREE_TEXT & row.keys():
            row[name] = public_value(row[name], hidden)
    return change


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
