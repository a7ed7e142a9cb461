"""Who has won a challenge, or leads it so far, and why: a headline and one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs_app.features.challenges.figures import MEASURES, ORDER, Contender
from runs_app.features.challenges.models import Challenge
from tasks_app.numbers import percent, times

_MEASURES = {measure.name: measure for measure in MEASURES}
_WORDS = {
    "hidden_correct": "{} of the tasks also correct on hidden workloads",
    "score": "a score of {}",
    "correct": "{} of the tasks correct on public workloads",
}


@dataclass(frozen=True)
class Winner:
    """The headline of a challenge; `kind` is good once it can't change any more."""

    headline: str
    sentence: str
    kind: str


def winner(challenge: Challenge, contenders: Sequence[Contender]) -> Winner | None:
    """The first contender and what put it first; None without any. They come in their order."""
    if not contenders:
        return None
    first, others = contenders[0], contenders[1:]
    if not any(_median(name, first) for name in ORDER):
        return Winner("Nobody leads", "No entry has solved a task.", "")
    decisive = next((name for name in ORDER if _differs(name, contenders[:2])), "")
    if others and not decisive:
        sentence = f"{first.name} and {others[0].name} are tied on every measure that counts."
        return Winner("A tie", sentence, "")
    name = decisive or next((name for name in ORDER if _median(name, first)), "correct")
    said = _words(name, first)
    against = f", against {_figure(name, others[0])} for {others[0].name}" if others else ""
    alone = "" if others else "; nobody else entered"
    if challenge.closed_at is not None:
        return Winner(f"{first.name} wins", f"It has {said}{against}{alone}.", "good")
    decides = "hidden workloads, which are measured at the end, decide who wins"
    headline = f"{first.name} leads so far"
    return Winner(headline, f"It has {said}{against}{alone}; {decides}.", "")


def _differs(name: str, both: Sequence[Contender]) -> bool:
    return len({_median(name, each) for each in both}) > 1


def _median(name: str, contender: Contender) -> float:
    spread = contender.spread(name)
    return spread.median if spread else 0.0


def _figure(name: str, contender: Contender) -> str:
    value = _median(name, contender)
    if not contender.spread(name):
        return "none"
    return percent(value) if _MEASURES[name].form == "percent" else times(value)


def _words(name: str, contender: Contender) -> str:
    return _WORDS[name].format(_figure(name, contender))
