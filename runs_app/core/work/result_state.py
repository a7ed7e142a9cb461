"""The state of a result, in one word. Pages, cards, feeds and the API all take it from here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from django.db.models import Q

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Audited, Evaluation, Quarantine, Submission


@dataclass(frozen=True)
class ResultState:
    """A state: its name for programs, its label for people, its color, and its meaning.

    is_sure: whether the figure may be a record, have a color, or lead a headline.
    """

    name: str
    label: str
    kind: str
    meaning: str
    is_sure: bool = True


PROVISIONAL = ResultState(
    "provisional",
    "Provisional",
    "",
    "We're still waiting for its baselines or an audit.",
    is_sure=False,
)
EAGER_ONLY = ResultState(
    "provisional",
    "Eager only",
    "",
    "Compared with PyTorch eager only; the site that measured it reported no torch.compile time.",
    is_sure=False,
)
"""Provisional for good: of an imported result nothing is measured here."""
RANKED = ResultState(
    "ranked", "Ranked", "", "Measured in ranked mode, but no audit has confirmed it yet."
)
VERIFIED = ResultState("verified", "Verified", "good", "It passed an audit with new seeds.")
TUNED = ResultState(
    "tuned", "Tuned to the listed sizes", "warn",
    "Its speedup on listed sizes is at least 1.2 times its speedup on unlisted ones.",
)  # fmt: skip
QUARANTINED = ResultState(
    "quarantined", "In quarantine", "warn", "It doesn't count anywhere until a person decides.",
    is_sure=False,
)  # fmt: skip
REJECTED = ResultState(
    "rejected", "Rejected", "bad", "A person or an audit rejected it.", is_sure=False
)
STATES = (PROVISIONAL, RANKED, VERIFIED, TUNED, QUARANTINED, REJECTED)


class Judged(Protocol):
    """Anything that has a state: an evaluation, or an entry of a board."""

    @property
    def audited(self) -> str:
        """What audits say, one of `Audited`."""

    @property
    def awaits_baselines(self) -> bool:
        """Whether a baseline is still being measured."""

    @property
    def is_tuned(self) -> bool:
        """Whether it is so much better on listed sizes that it counts as tuned to them."""

    @property
    def imported(self) -> bool:
        """Whether another site measured it."""


def state_of_place(place: Judged) -> ResultState:
    """The state of a correct ranked result that nobody has put in quarantine or rejected."""
    if place.audited == Audited.FAILED:
        return REJECTED
    if place.audited == Audited.SUSPICIOUS:
        return QUARANTINED
    if place.awaits_baselines and place.imported:
        return EAGER_ONLY
    if place.awaits_baselines or place.audited == Audited.WAITING:
        return PROVISIONAL
    if place.is_tuned:
        return TUNED
    return VERIFIED if place.audited == Audited.PASSED else RANKED


def result_state(evaluation: Evaluation) -> ResultState | None:
    """The state of an evaluation; None if it can't be on a board and nobody doubts it."""
    if evaluation.quarantine == Quarantine.REJECTED:
        return REJECTED
    if evaluation.quarantine == Quarantine.OPEN:
        return QUARANTINED
    is_ranked = evaluation.mode == Mode.RANKED and evaluation.verdict == Verdict.CORRECT
    is_for_a_board = is_ranked and evaluation.submission.origin != Submission.Origin.RUN
    return state_of_place(evaluation) if is_for_a_board else None


def is_whole(evaluation: Evaluation) -> bool:
    """Whether it is compared with every baseline of its task that can be measured.

    An audit never is: the ranked result that it judges has the score. An imported result of a mode
    that measures none may know only some.
    """
    if evaluation.awaits_baselines or evaluation.mode == Mode.AUDIT:
        return False
    if evaluation.mode == Mode.RANKED or not evaluation.imported:
        return True
    return bool(evaluation.speedup_eager and evaluation.speedup_compiled)


def is_sure(evaluation: Evaluation) -> bool:
    """Whether its figures may have a color: nothing about them is provisional or in doubt."""
    state = result_state(evaluation)
    return is_whole(evaluation) and (state is None or state.is_sure)


def compared_with(evaluation: Evaluation) -> str:
    """The baseline of its speedup and score: "best" once all are known, else those known."""
    if not evaluation.speedup_best:
        return ""
    if is_whole(evaluation):
        return "best"
    own = {"eager": evaluation.speedup_eager, "compiled": evaluation.speedup_compiled}
    known = [name for name, speedup in own.items() if speedup]
    slowest = min((speedup for speedup in own.values() if speedup), default=math.inf)
    if len(known) < len(own) and evaluation.speedup_best < slowest * (1 - _SAME):
        known.append("library")  # another one is faster
    return " and ".join(known)


_SAME = 1e-6  # chosen: figures that differ by less were computed from the same times

COMPARED_WITH = (
    "Baseline that the score and speedups compare with: best once all are known, else those known,"
    " such as eager; then they are provisional in any mode. Empty without a speedup."
)
"""What the API says of it."""


def baseline_words(evaluation: Evaluation) -> str:
    """What its speedup compares with, as the end of a sentence."""
    if result_state(evaluation) is EAGER_ONLY:
        return "PyTorch eager"
    if is_whole(evaluation):
        return "the best baseline"
    names = compared_with(evaluation)
    return f"the baselines known so far{f' ({names})' if names not in ('', 'best') else ''}"


def baseline_noun(names: str) -> str:
    """What `compared_with` names, as a noun: "best baseline", "eager and compiled baselines"."""
    return f"{names or 'best'} baseline{'s' if ' and ' in names else ''}"


SURE = Q(awaits_baselines=False) & ~Q(audited=Audited.WAITING)
"""Ranked results that aren't waiting for baselines or an audit."""

SURE_LEAD = SURE & Q(speedup_best__isnull=False, task_version__task__contaminated="")
"""Of those that lead a board: what counts when somebody's leads are counted."""
