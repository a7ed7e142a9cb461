"""What the events of a run say of its evaluations: how many, in what order, and which were lost."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.events import Event

MAX_LOSSES = 3
"""Evaluations of a candidate in one mode that may be lost before the run goes on without it."""

LAST_MODES = frozenset({Mode.RANKED, Mode.AUDIT})
"""Modes of the evaluations that follow a search. They count in no cap of the run."""

RUN_ENDED = "its run has ended"
"""The reason when an evaluation is cancelled because nobody waits for it any more."""

_SAYS_NOTHING = frozenset({Verdict.SYSTEM_ERROR, Verdict.UNSTABLE})


def says_nothing(verdict: str) -> bool:
    """Whether a verdict says nothing about a kernel that another evaluation found correct."""
    return verdict in _SAYS_NOTHING


def is_refusal(verdict: str) -> bool:
    """Whether a verdict says that the kernel is not correct."""
    return verdict not in (Verdict.CORRECT, Verdict.TOO_SLOW) and not says_nothing(verdict)


def replaces_time(event: events.Measured, known_ns: float | None) -> bool:
    """Whether an evaluation takes the place of what an earlier one said of a candidate.

    A profile explains a time. A ranked time is better than a quick one. An audit refuses, and its
    time counts where it is the longer one.
    """
    verdict = event.verdict
    match event.mode:
        case Mode.PROFILE:
            return False
        case Mode.RANKED:
            return not says_nothing(verdict)
        case Mode.AUDIT:
            is_longer = (event.latency_ns or 0.0) > (known_ns or math.inf)
            return is_refusal(verdict) or (verdict == Verdict.CORRECT and is_longer)
        case _:
            return verdict != Verdict.SYSTEM_ERROR


def replaces_feedback(mode: Mode, verdict: str) -> bool:
    """The same for what prompts and pages show of it: a correct ranked kernel keeps its profile."""
    if mode in LAST_MODES:
        return is_refusal(verdict)
    if mode is Mode.PROFILE:
        return verdict == Verdict.CORRECT
    return verdict != Verdict.SYSTEM_ERROR


@dataclass(kw_only=True)
class Evaluations:
    """A fold of its own, so that a stored run needs these few events alone.

    begun: those of the search. settled: candidates in the order in which hardware spoke of them, as
    keys. lost: evaluations of a candidate in a mode that were lost while the run went on. What the
    end of a search takes back counts for nothing: after an extension it is measured as if for the
    first time. last: what ranking and audit said of a candidate. scores: what each ranking or audit
    that found it correct gave it, 0 where it gave none. ranked: how often one was ranked since the
    search ended, in the way that `searched` tells.
    """

    begun: int = 0
    settled: dict[int, None] = field(default_factory=dict)
    lost: Counter[tuple[int, Mode]] = field(default_factory=Counter)
    last: dict[tuple[int, Mode], str] = field(default_factory=dict)
    scores: dict[tuple[int, Mode], list[float]] = field(default_factory=dict)
    ranked: int = 0
    is_over: bool = False
    searched: events.Searched | None = None

    def apply(self, event: Event) -> None:
        """Add one event; those that tell nothing of evaluations change nothing."""
        match event:
            case events.Measuring():
                self.begun += event.mode not in LAST_MODES
            case events.Tried():
                self.begun += 1
            case events.Measured():
                self.measured(event.candidate, event.mode, event.verdict, event.score)
            case events.Searched():
                self.searched, self.is_over, self.ranked = event, True, 0
            case events.Finished():
                self.is_over = True
            case events.Extended():
                self.is_over = False
                by_budget = self.searched is not None and self.searched.by_budget
                if by_budget or event.parameters:
                    self.searched = None

    def measured(
        self, candidate: int, mode: Mode, verdict: str, score: float | None = None
    ) -> None:
        """Add the end of one evaluation; a repetition that says nothing changes no verdict."""
        if mode in LAST_MODES:
            if not says_nothing(verdict) or self.last.get((candidate, mode)) != Verdict.CORRECT:
                self.last[candidate, mode] = verdict
            if verdict == Verdict.CORRECT:
                self.scores.setdefault((candidate, mode), []).append(score or 0.0)
            self.ranked += mode is Mode.RANKED
        if verdict != Verdict.SYSTEM_ERROR:
            self.settled.setdefault(candidate)
        elif not self.is_over or mode in LAST_MODES:
            self.lost[candidate, mode] += 1

    def scores_of(self, candidate: int, mode: Mode) -> list[float]:
        """What rankings or audits gave a candidate; 0 for one that found it correct without."""
        return self.scores.get((candidate, mode), [])

    def may_come_again(self, event: events.Measured) -> bool:
        """Whether a measurement, applied before, was lost and may be made once more."""
        is_lost = event.verdict == Verdict.SYSTEM_ERROR
        return is_lost and self.lost[event.candidate, event.mode] < MAX_LOSSES
