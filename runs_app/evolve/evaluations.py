"""What the events of a run say of its evaluations: how many, in what order, and which were lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.evolve import events
from runs_app.evolve.events import Event

MAX_LOSSES = 3
"""Evaluations of a candidate in one mode that may be lost before the run goes on without it."""


@dataclass(kw_only=True)
class Evaluations:
    """A fold of its own, so that a stored run needs these few events alone.

    settled: candidates in the order in which hardware spoke of them, as keys. lost: evaluations of
    a candidate in a mode that were lost while the run went on. What the end of a run takes back
    counts for nothing: after an extension it is measured as if for the first time.
    """

    begun: int = 0
    settled: dict[int, None] = field(default_factory=dict)
    lost: Counter[tuple[int, Mode]] = field(default_factory=Counter)
    is_over: bool = False

    def apply(self, event: Event) -> None:
        """Add one event; those that tell nothing of evaluations change nothing."""
        match event:
            case events.Measuring():
                self.begun += 1
            case events.Measured():
                self.measured(event.candidate, event.mode, event.verdict)
            case events.Finished():
                self.is_over = True
            case events.Extended():
                self.is_over = False

    def measured(self, candidate: int, mode: Mode, verdict: str) -> None:
        """Add the end of one evaluation."""
        if verdict != Verdict.SYSTEM_ERROR:
            self.settled.setdefault(candidate)
        elif not self.is_over:
            self.lost[candidate, mode] += 1

    def may_come_again(self, event: events.Measured) -> bool:
        """Whether a measurement, applied before, was lost and may be made once more."""
        is_lost = event.verdict == Verdict.SYSTEM_ERROR
        return is_lost and self.lost[event.candidate, event.mode] < MAX_LOSSES
