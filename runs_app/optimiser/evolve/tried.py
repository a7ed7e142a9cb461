"""What a run has tried and lost, and why, as prompts show it: a failure is worth knowing once."""

from __future__ import annotations

from collections.abc import Iterable

from runs_app.optimiser.evolve.history import Candidate, CandidateState, History
from runs_app.optimiser.evolve.sections import CHARACTERS_PER_TOKEN, by_workload, short_us

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
    correct = [c for c in history.correct() if _is_earlier(c, before)]
    best = correct[-1] if correct else None
    lines: list[str] = []
    room = MAX_TRIED_TOKENS * CHARACTERS_PER_TOKEN
    for candidate in reversed(history.candidates.values()):
        if candidate.number in shown or not _is_earlier(candidate, before):
            continue
        if candidate is best or not _is_lost(candidate):
            continue
        line = f"- {_line(candidate, history, best)}"
        room -= len(line) + 1
        if room < 0:
            lines.append("- and earlier ones")
            break
        lines.append(line)
    return "\n".join(lines or [_NOTHING]) + _leaders(history, correct[-_COMPARED:])


def _is_earlier(candidate: Candidate, before: int | None) -> bool:
    return before is None or candidate.place.generation < before


def _leaders(history: History, correct: Iterable[Candidate]) -> str:
    """Which kernel is the fastest on each workload; empty where one is on all of them."""
    fastest: dict[str, tuple[float, int]] = {}
    for candidate in correct:
        feedback = history.details.feedback(candidate.number)
        for each in feedback.workloads if feedback is not None else ():
            found = each.time_ns, candidate.number
            fastest[each.name] = min(fastest.get(each.name, found), found)
    if len({number for _, number in fastest.values()}) < 2:
        return ""
    leaders = (f"{name} {short_us(time)} us (#{by})" for name, (time, by) in fastest.items())
    return f"\n\nFastest on each workload so far: {', '.join(leaders)}."


def _is_lost(candidate: Candidate) -> bool:
    if candidate.state is CandidateState.DROPPED:
        return "same as" not in candidate.reason  # a repeat teaches nothing new
    return candidate.is_told


def _line(candidate: Candidate, history: History, best: Candidate | None) -> str:
    name = f"#{candidate.number} {_short(candidate.title, _TITLE)}".rstrip()
    if candidate.techniques:
        name += f" ({', '.join(candidate.techniques[:3])})"
    if candidate.state is CandidateState.DROPPED:
        return f"{name}: not measured, {_short(candidate.reason, _REASON)}"
    if candidate.latency_ns is None:
        return f"{name}: {candidate.verdict}, {_short(candidate.reason, _REASON)}"
    feedback = history.details.feedback(candidate.number)
    time_ns = (feedback.latency_ns if feedback is not None else None) or candidate.latency_ns
    of = best.latency_ns if best is not None else None
    slower = f", {candidate.latency_ns / of:.2f}x the best one's time" if of else ""
    noise = f" +-{candidate.spread:.0%}" if candidate.spread else ""
    return f"{name}: correct, {time_ns / 1e3:.2f} us{noise}{slower}{by_workload(feedback)}"


def _short(text: str, most: int) -> str:
    """At most so many characters, and no half word where there are several."""
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[:most].rpartition(' ')[0] or words[:most]}..."
