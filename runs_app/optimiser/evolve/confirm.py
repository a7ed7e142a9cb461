"""What a run does after its search: its best are ranked together, and the best one is audited.

A quick evaluation looks at few calls of the listed workloads. So a kernel that a run calls its best
has been ranked: on hidden workloads, with other values, in several processes. If several come near,
each is ranked more than once, by turns, because the best of single measurements is the luckiest.
One that is refused gives its place to the next.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from gpu_runner.data.numbers import duration_text
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve.commands import Edit, Measure
from runs_app.optimiser.evolve.evaluations import is_refusal
from runs_app.optimiser.evolve.events import Chosen
from runs_app.optimiser.evolve.history import Candidate, History, noise_ns

MOST_TIED = 3
"""Candidates near the fastest that are ranked beside it, it too."""

NEAR = 1.1
"""How many times the fastest one's time, on listed sizes, a candidate may take to be near it.

Half of a score is unlisted, so such a candidate may still be the best. Source: judgement.
"""

REPEATS = 2
"""How often each of several candidates is ranked. Source: judgement; an audit is one more."""

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
        return _chosen(history, tied[0], "no candidate was faster than the seed kernel")
    rivals = [c for c in tied if _is_wanting(history, c, REPEATS) or _is_sure(history, c)]
    repeats = REPEATS if len(rivals) > 1 else 1
    wanting = [c for c in tied if _is_wanting(history, c, repeats)]
    least = min((len(history.told.scores_of(c.number, Mode.RANKED)) for c in wanting), default=0)
    under_way = [c for c in wanting if Mode.RANKED in c.measuring]
    room = MOST_RANKED - history.told.ranked - len(under_way)
    if wanting and (under_way or room > 0):
        new = [c for c in wanting if c not in under_way]
        turn = [c for c in new if len(history.told.scores_of(c.number, Mode.RANKED)) == least]
        return Confirmation(_measures(turn[: max(room, 0)], Mode.RANKED))
    among = correct if wanting else tied  # of what could not be ranked nothing is sure
    sure = _best_first(history, [c for c in among if _is_sure(history, c)])
    if not sure:
        return _chosen(history, tied[0], _why_not_ranked(history, tied[0]))
    if Mode.AUDIT not in sure[0].measured:
        return Confirmation(_measures(sure[:1], Mode.AUDIT))
    return _chosen(history, sure[0], _comparison(history, sure[0]))


def near_ties(fastest_first: list[Candidate]) -> list[Candidate]:
    """The fastest, and what comes near it; `MOST_TIED` in all."""
    return [c for c in fastest_first[:MOST_TIED] if _is_near(c, fastest_first[0])]


def _is_near(candidate: Candidate, fastest: Candidate) -> bool:
    slow, fast = candidate.latency_ns or 0.0, fastest.latency_ns or 0.0
    return slow - fast <= max(noise_ns(candidate, fastest), fast * (NEAR - 1))


def _is_wanting(history: History, candidate: Candidate, repeats: int) -> bool:
    """Whether it has to be ranked, or ranked again."""
    if Mode.RANKED not in candidate.measured:
        return True
    scores = history.told.scores_of(candidate.number, Mode.RANKED)
    return _is_sure(history, candidate) and len(scores) < repeats


def _is_sure(history: History, candidate: Candidate) -> bool:
    """Whether ranking found it correct."""
    return history.last_verdict(candidate, Mode.RANKED) == Verdict.CORRECT


def _best_first(history: History, candidates: list[Candidate]) -> list[Candidate]:
    """By what is sure of their scores; in the order of their times if one has no score."""
    scores = {c.number: _sure_score(history, c) for c in candidates}
    if not all(scores.values()):
        return candidates
    return sorted(candidates, key=lambda c: -scores[c.number])


def _sure_score(history: History, candidate: Candidate) -> float:
    """The mean over its rankings, or what its audit gave it if that is less; 0 if unknown."""
    told, number = history.told, candidate.number
    ranked, audited = (told.scores_of(number, mode) for mode in (Mode.RANKED, Mode.AUDIT))
    if not ranked or not all((*ranked, *audited)):
        return 0.0
    return min([statistics.geometric_mean(ranked), *audited])


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
            return "it was correct when it was ranked, but its time was too noisy to count"
        case Verdict.SYSTEM_ERROR:
            return "ranking it ended without a verdict"
        case _:
            return f"it was not ranked: {history.told.ranked} others were, and none of them count"


def _comparison(history: History, best: Candidate) -> str:
    """What became of those that were ranked beside it, the noisy too; the refused have a list."""
    ranked = [c for c in history.candidates.values() if c is not best and Mode.RANKED in c.measured]
    others = [c for c in ranked if not is_refusal(history.last_verdict(c, Mode.RANKED))]
    if not others:
        return "no other candidate came close"
    return f"also ranked: {', '.join(_outcome(history, each) for each in others)}"


def _outcome(history: History, candidate: Candidate) -> str:
    verdict = history.last_verdict(candidate, Mode.RANKED)
    is_timed = verdict == Verdict.CORRECT and candidate.latency_ns is not None
    said = duration_text(candidate.latency_ns) if is_timed else verdict
    return f"#{candidate.number} {said}"
