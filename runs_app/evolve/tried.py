"""What a run has tried and lost, and why, as prompts show it: a failure is worth knowing once."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import shorten

from runs_app.evolve.history import Candidate, CandidateState, History
from runs_app.evolve.sections import CHARACTERS_PER_TOKEN, by_workload

MAX_TRIED_TOKENS = 1000
_REASON = 220  # characters of a reason: the first error and its line
_TITLE = 90
_NOTHING = "Nothing besides what is shown here."
_COMPARED = 40
"""Fastest kernels among which the fastest of each workload is looked for."""


def tried_text(history: History, *, besides: Iterable[int] = (), before: int | None = None) -> str:
    """Candidates that failed, or are slower than the best: the newest first, a line each.

    besides: numbers of those that the prompt shows anyway. before: of earlier generations alone, so
    that the order in which a generation's results arrive changes no prompt.
    """
    shown = set(besides)
    lines: list[str] = []
    room = MAX_TRIED_TOKENS * CHARACTERS_PER_TOKEN
    for candidate in reversed(history.candidates.values()):
        if candidate.number in shown or not _is_lost(candidate, history):
            continue
        if before is not None and candidate.place.generation >= before:
            continue
        line = f"- {_line(candidate, history)}"
        room -= len(line) + 1
        if room < 0:
            lines.append("- and earlier ones")
            break
        lines.append(line)
    return "\n".join(lines or [_NOTHING]) + _leaders(history, before)


def _leaders(history: History, before: int | None) -> str:
    """Which kernel is the fastest on each workload; empty where one is on all of them."""
    fastest: dict[str, tuple[float, int]] = {}
    for candidate in history.correct()[-_COMPARED:]:
        if before is not None and candidate.place.generation >= before:
            continue
        feedback = history.details.feedback(candidate.number)
        for each in feedback.workloads if feedback is not None else ():
            found = each.time_ns, candidate.number
            fastest[each.name] = min(fastest.get(each.name, found), found)
    if len({number for _, number in fastest.values()}) < 2:
        return ""
    named = (f"{name} {time / 1e3:.3g} us (#{by})" for name, (time, by) in fastest.items())
    return f"\n\nFastest on each workload so far: {', '.join(named)}."


def _is_lost(candidate: Candidate, history: History) -> bool:
    if candidate.state is CandidateState.DROPPED:
        return "same as" not in candidate.reason  # a repeat teaches nothing new
    return candidate.is_told and candidate is not history.best


def _line(candidate: Candidate, history: History) -> str:
    name = f"#{candidate.number} {shorten(candidate.title, _TITLE, placeholder='...')}".rstrip()
    if candidate.techniques:
        name += f" ({', '.join(candidate.techniques[:3])})"
    if candidate.state is CandidateState.DROPPED:
        return f"{name}: not measured, {_short(candidate.reason)}"
    if candidate.latency_ns is None:
        return f"{name}: {candidate.verdict}, {_short(candidate.reason)}"
    best = history.best.latency_ns if history.best else None
    slower = f", {candidate.latency_ns / best:.2f}x the best one's time" if best else ""
    noise = f" +-{candidate.spread:.0%}" if candidate.spread else ""
    times = by_workload(history.details.feedback(candidate.number))
    return f"{name}: correct, {candidate.latency_ns / 1e3:.2f} us{noise}{slower}{times}"


def _short(reason: str) -> str:
    words = " ".join(reason.split())
    return words if len(words) <= _REASON else f"{words[:_REASON]}..."
