"""By how much one name is ahead of another, over the tasks that both solved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from leaderboard_app.boards.ranking import Entry, sure_of
from runs_app.core.integrity.intervals import Interval, geometric_interval
from tasks_app.numbers import between, counted, times


@dataclass(frozen=True)
class Lead:
    """The ratio of two names' results, as a mean over tasks; the interval is over these, too.

    A task on which one of them is far ahead says little about the others: so the interval comes
    from the choice of tasks, and holds the noise of timing.
    """

    ratio: Interval
    tasks: int

    @property
    def interval(self) -> str:
        """In words; a single task has none."""
        return between(self.ratio.low, self.ratio.high) if self.tasks > 1 else "1 task"

    def sentence(self, one: str, other: str) -> str:
        """By how much the one name is ahead of the other, and whether that is clear."""
        is_clear = self.tasks > 1 and not self.ratio.low <= 1 <= self.ratio.high
        return (
            f"Over {counted(self.tasks, 'task')} that both solved, {one} is"
            f" {times(self.ratio.mean)} as fast as {other} ({self.interval})"
            f"{'' if is_clear else ': too close to call'}."
        )


def lead(one: Iterable[Entry], other: Iterable[Entry]) -> Lead | None:
    """Over the problems on which both have a sure result of the same kind; None without any."""
    theirs = {entry.problem: entry for entry in sure_of(list(other))}
    pairs = (
        (entry, theirs[entry.problem])
        for entry in sorted(sure_of(list(one)), key=lambda entry: entry.problem)
        if entry.problem in theirs
    )
    values = tuple(
        mine.rated.value / its.rated.value
        for mine, its in pairs
        if mine.rated and its.rated and bool(mine.score) == bool(its.score)
    )
    ratio = geometric_interval(values)
    return Lead(ratio, len(values)) if ratio else None
