"""What a run has tried and lost, and why, as prompts show it: a failure is worth knowing once."""

from __future__ import annotations

from collections.abc import Iterable

from runs_app.evolve.history import Candidate, CandidateState, History
from runs_app.evolve.sections import CHARACTERS_PER_TOKEN

MAX_TRIED_TOKENS = 800
_REASON = 220  # characters of a reason: the first error and its line
_TITLE = 90
_NOTHING = "Nothing yet."


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
    return "\n".join(lines) or _NOTHING


def _is_lost(candidate: Candidate, history: History) -> bool:
    if candidate.state is CandidateState.DROPPED:
        return "same as" not in candidate.reason  # a repeat teaches nothing new
    return candidate.is_told and candidate is not history.best


def _line(candidate: Candidate, history: History) -> str:
    name = f"#{candidate.number} {candidate.title[:_TITLE]}".rstrip()
    if candidate.techniques:
        name += f" ({', '.join(candidate.techniques[:3])})"
    if candidate.state is CandidateState.DROPPED:
        return f"{name}: not measured, {_short(candidate.reason)}"
    if candidate.latency_ns is None:
        return f"{name}: {candidate.verdict}, {_short(candidate.reason)}"
    best = history.best.latency_ns if history.best else None
    slower = f", {candidate.latency_ns / best:.2f}x the best one's time" if best else ""
    noise = f" +-{candidate.spread:.0%}" if candidate.spread else ""
    return f"{name}: correct, {candidate.latency_ns / 1e3:.2f} us{noise}{slower}"


def _short(reason: str) -> str:
    words = " ".join(reason.split())
    return words if len(words) <= _REASON else f"{words[:_REASON]}..."
