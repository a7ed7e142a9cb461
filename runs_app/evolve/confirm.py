"""What a run does after its search: its best are ranked together, and the fastest is audited.

A quick evaluation looks at few calls of the public workloads. So a kernel that a run calls its best
has been ranked: on hidden workloads, with other values, in several processes. One that is refused
gives its place to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.evolve.commands import Edit, Measure
from runs_app.evolve.evaluations import is_refusal
from runs_app.evolve.events import Chosen
from runs_app.evolve.history import Candidate, History

MOST_TIED = 3
"""Candidates within noise of the fastest that are ranked beside it, it too."""

MOST_RANKED = 9
"""How often a candidate is ranked after a search, however many are refused or lost."""


@dataclass(frozen=True)
class Confirmation:
    """What is to be measured now, or that nothing is left and what the run calls its best."""

    measure: tuple[Measure, ...] = ()
    is_over: bool = False
    chosen: Chosen | None = None


def confirmation(history: History) -> Confirmation:
    """The next step after a search; no measurement and no end means that one is awaited."""
    correct = list(reversed(history.correct()))
    tied = near_ties(correct)
    if not tied:
        return Confirmation(is_over=True)
    if tied[0].edit is Edit.SEED:
        return _chosen(history, tied[0], "nothing was measured to be faster than the seed kernel")
    wanting = [c for c in tied if Mode.RANKED not in c.measured]
    under_way = [c for c in wanting if Mode.RANKED in c.measuring]
    room = MOST_RANKED - history.ranked - len(under_way)
    if wanting and (under_way or room > 0):
        new = [c for c in wanting if c not in under_way][: max(room, 0)]
        return Confirmation(_measures(new, Mode.RANKED))
    among = correct if wanting else tied  # of what could not be ranked nothing is sure
    sure = [c for c in among if history.last_verdict(c, Mode.RANKED) == Verdict.CORRECT]
    if not sure:
        return _chosen(history, tied[0], _why_not_ranked(history, tied[0]))
    if Mode.AUDIT not in sure[0].measured:
        return Confirmation(_measures(sure[:1], Mode.AUDIT))
    return _chosen(history, sure[0], _comparison(history, sure[0]))


def near_ties(fastest_first: list[Candidate]) -> list[Candidate]:
    """The fastest, and what noise alone may have put behind it; `MOST_TIED` in all."""
    return [c for c in fastest_first[:MOST_TIED] if _is_near(c, fastest_first[0])]


def _is_near(candidate: Candidate, fastest: Candidate) -> bool:
    slow, fast = candidate.latency_ns or 0.0, fastest.latency_ns or 0.0
    noise = math.hypot(slow * (candidate.spread or 0.0), fast * (fastest.spread or 0.0))
    return slow - fast <= noise


def _measures(candidates: list[Candidate], mode: Mode) -> tuple[Measure, ...]:
    return tuple(Measure(candidate=candidate.number, mode=mode) for candidate in candidates)


def _chosen(history: History, candidate: Candidate, reason: str) -> Confirmation:
    return Confirmation(
        is_over=True,
        chosen=Chosen(
            candidate=candidate.number,
            is_ranked=history.last_verdict(candidate, Mode.RANKED) == Verdict.CORRECT,
            is_audited=history.last_verdict(candidate, Mode.AUDIT) == Verdict.CORRECT,
            reason=reason,
        ),
    )


def _why_not_ranked(history: History, candidate: Candidate) -> str:
    match history.last_verdict(candidate, Mode.RANKED):
        case Verdict.UNSTABLE:
            return "it was right when it was ranked, but its time was too noisy to count"
        case Verdict.SYSTEM_ERROR:
            return "ranking it ended without a verdict"
        case _:
            return f"it was not ranked: {history.ranked} others were, and none of them counts"


def _comparison(history: History, best: Candidate) -> str:
    """What became of those that were ranked beside it, the noisy too; the refused have a list."""
    ranked = [c for c in history.candidates.values() if c is not best and Mode.RANKED in c.measured]
    others = [c for c in ranked if not is_refusal(history.last_verdict(c, Mode.RANKED))]
    if not others:
        return "nothing else came near it"
    return f"ranked beside it: {', '.join(_outcome(history, each) for each in others)}"


def _outcome(history: History, candidate: Candidate) -> str:
    verdict = history.last_verdict(candidate, Mode.RANKED)
    is_timed = verdict == Verdict.CORRECT and candidate.latency_ns is not None
    said = f"{(candidate.latency_ns or 0.0) / 1e3:.2f} us" if is_timed else verdict
    return f"#{candidate.number} {said}"
