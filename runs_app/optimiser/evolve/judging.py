"""How right verifiers are: their votes against what hardware then said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from gpu_runner.data.verdict import Verdict

VERIFIERS = ("compile", "memory", "numerics")

_UNKNOWN = {Verdict.UNSTABLE, Verdict.SYSTEM_ERROR}
_FAULTS = {
    "compile": {Verdict.COMPILE_ERROR},
    "memory": {Verdict.RUNTIME_ERROR, Verdict.MEMORY_LIMIT, Verdict.VIOLATION, Verdict.TIME_LIMIT},
    "numerics": {Verdict.WRONG_RESULT, Verdict.WRONG_SHAPE, Verdict.WRONG_DTYPE},
}
_NEVER_RAN = {Verdict.COMPILE_ERROR, Verdict.COMPILED}
_NOT_COMPARED = {Verdict.TOO_SLOW}


@cache
def truth(verifier: str, verdict: str) -> bool | None:
    """What the verifier should have voted, by the verdict; None where hardware did not tell.

    compile: it built. memory: it built and ran to its end within its limits. numerics: it ran to
    its end and its outputs were right. UNSTABLE and SYSTEM_ERROR tell nothing.
    """
    if verdict not in set(Verdict) or verdict in _UNKNOWN:
        return None
    if verdict in _FAULTS[verifier]:
        return False
    if verifier != "compile" and verdict in _NEVER_RAN:
        return None
    if verifier == "numerics" and verdict in _FAULTS["memory"] | _NOT_COMPARED:
        return None
    return True


@dataclass(frozen=True)
class Confusion:
    """Counts of votes; an alarm is a vote that the kernel fails.

    caught: alarm, and it failed. false_alarms: alarm, and it passed. missed: no alarm, and it
    failed. passed: no alarm, and it passed.
    """

    caught: int = 0
    false_alarms: int = 0
    missed: int = 0
    passed: int = 0

    @classmethod
    def of(cls, votes: Iterable[tuple[bool, bool]]) -> Confusion:
        """Count pairs of vote and truth."""
        counts = Counter(votes)
        return cls(
            caught=counts[False, False],
            false_alarms=counts[False, True],
            missed=counts[True, False],
            passed=counts[True, True],
        )

    @property
    def total(self) -> int:
        """Votes that hardware has checked."""
        return self.caught + self.false_alarms + self.missed + self.passed

    @property
    def accuracy(self) -> float | None:
        """Share of right votes."""
        return _share(self.caught + self.passed, self.total)

    @property
    def precision(self) -> float | None:
        """Share of alarms that were right."""
        return _share(self.caught, self.caught + self.false_alarms)

    @property
    def recall(self) -> float | None:
        """Share of failures that were caught."""
        return _share(self.caught, self.caught + self.missed)

    @property
    def always_passes(self) -> float | None:
        """Accuracy of a verifier that never raises an alarm, on the same kernels."""
        return _share(self.false_alarms + self.passed, self.total)


@dataclass(frozen=True)
class Bin:
    """Candidates whose mean vote lies from `low` to `high`, and how many of them were correct."""

    low: float
    high: float
    count: int
    correct: int
    mean_score: float | None

    @property
    def correct_share(self) -> float | None:
        """Share of them that hardware found correct."""
        return _share(self.correct, self.count)


EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def calibration(scores: Iterable[tuple[float, bool]]) -> list[Bin]:
    """Bins of mean votes against the truth; a score on an edge belongs to the upper bin."""
    held: list[list[tuple[float, bool]]] = [[] for _ in EDGES[1:]]
    for score, correct in scores:
        held[min(int(score * len(held) + 1e-9), len(held) - 1)].append((score, correct))
    return [
        Bin(
            low=EDGES[index],
            high=EDGES[index + 1],
            count=len(rows),
            correct=sum(correct for _, correct in rows),
            mean_score=_share(sum(score for score, _ in rows), len(rows)),
        )
        for index, rows in enumerate(held)
    ]


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
