"""Entries of boards, and figures over many of them: geometric means and fast_p."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from gpu_runner.data.rounding import three_digits
from gpu_runner.data.scores import is_tuned
from runs_app.core.integrity.ranking import Estimate
from runs_app.core.work.result_state import ResultState, state_of_place
from tasks_app.numbers import counted

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0, 8.0)
"""Values of p on offer for fast_p; 0, 1, 2, 4 and 8 are MSKernelBench's success at tau."""

CURVE_LARGEST = 16.0
"""The fast_p curve is drawn over p from 1/16 to 16."""


class Sort(StrEnum):
    """What a board is ordered by."""

    SPEEDUP = "speedup"
    FAST = "fast"
    LATENCY = "latency"
    CORRECT = "correct"
    SCORE = "score"
    P = "p"
    FLOOR = "floor"
    NEWEST = "newest"
    TASK = "task"


class Problem(NamedTuple):
    """What a solution solves: a task in one direction."""

    task: str
    direction: str

    @property
    def label(self) -> str:
        """Its name where there is no room for a tag."""
        return self.task if self.direction == "forward" else f"{self.task}, {self.direction}"


def counted_problems(problems: Collection[Problem]) -> str:
    """How many there are: "3 tasks", or "3 task directions" if a task occurs more than once."""
    is_task_each = len({problem.task for problem in problems}) == len(problems)
    return counted(len(problems), "task" if is_task_each else "task direction")


class Author(NamedTuple):
    """Who entered a solution and what wrote it; `language_model` is empty for people.

    `kind` is one of `Agent.Kind`, `agent_id` the agent's key.
    """

    submitter: str
    agent: str
    language_model: str
    kind: str = ""
    agent_id: int = 0


Owner = Callable[[Author], str]
"""Picks the name under which results are put together; an empty name is left out."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One correct ranked evaluation, as the boards see it.

    Speedups are ratios per baseline and against the "best" of them on listed sizes,
    `unlisted_speedup` against the best on unlisted ones, and the score is the mean of both.
    `latency` is in nanoseconds. `audited` is what audits say of the submission there.
    `guest`: measured on a host that the site's admins don't control.
    """

    evaluation_id: str
    submission_id: str
    author: Author
    problem: Problem
    device: str
    finished_at: datetime
    latency: Estimate
    merit: float  # what boards order by
    speedups: Mapping[str, Estimate] = field(default_factory=dict)
    unlisted_speedup: float | None = None
    score: Estimate | None = None
    floor_fraction: float | None = None
    p_score: float | None = None
    audited: str = "none"
    awaits_baselines: bool = False
    guest: bool = False
    imported: bool = False  # another site measured it
    wrote_task: bool = False  # its submitter wrote the task, and knows hidden workloads of it

    @property
    def verified(self) -> bool:
        """Whether an audit passed; until then the entry is shown as unverified."""
        return self.audited == "passed"

    @property
    def state(self) -> ResultState:
        """The state of the result."""
        return state_of_place(self)

    @property
    def compared_with(self) -> str:
        """The baseline of `speedup` and the score: "best" once all are known, else those known."""
        if not self.speedup or not self.awaits_baselines:
            return "best" if self.speedup else ""
        return " and ".join(name for name in self.speedups if name != "best")

    @property
    def no_baseline(self) -> str:
        """Why a speedup over a baseline is missing, as far as a board knows it."""
        if self.imported:
            return "The site that measured it sent no time for this baseline."
        if self.awaits_baselines:
            return "We're still waiting for this baseline."
        return "This baseline could not be measured. The result's page says why."

    @property
    def no_unlisted(self) -> str:
        """Why it lacks a speedup on unlisted sizes, as far as a board knows it."""
        if self.imported:
            return "The site that measured it sent no times on this site's unlisted sizes."
        if self.awaits_baselines:
            return "We're still waiting for baselines on unlisted sizes."
        return "The task has no unlisted sizes for this device, or their baselines are missing."

    @property
    def is_sure(self) -> bool:
        """Whether its figures may have a color."""
        return self.state.is_sure

    @property
    def is_final(self) -> bool:
        """Whether its lead counts where leads are counted, as `SURE_LEAD` says of rows."""
        return self.is_sure and self.rated is not None

    @property
    def speedup(self) -> Estimate | None:
        """Speedup against the best baseline of each listed workload."""
        return self.speedups.get("best")

    @property
    def rated(self) -> Estimate | None:
        """The score or, without one, the speedup on listed sizes."""
        return self.score or self.speedup

    @property
    def eager(self) -> Estimate | None:
        """Speedup against the eager baseline."""
        return self.speedups.get("eager")

    @property
    def compiled(self) -> Estimate | None:
        """Speedup against the compiled baseline."""
        return self.speedups.get("compiled")

    @property
    def listed_ratio(self) -> float | None:
        """Listed over unlisted speedup; far above 1 means that it is tuned to the listed sizes."""
        if self.speedup is None or not self.unlisted_speedup:
            return None
        return three_digits(self.speedup.value / self.unlisted_speedup)

    @property
    def is_tuned(self) -> bool:
        """Whether it is so much better on listed sizes that it counts as tuned to them."""
        return self.speedup is not None and is_tuned(self.speedup.value, self.unlisted_speedup)


def geometric_mean(estimates: Sequence[Estimate]) -> Estimate | None:
    """Geometric mean with an interval, the estimates' errors taken as independent.

    None for an empty sequence. The half-widths add in quadrature on the logarithmic axis.
    """
    if not estimates:
        return None
    count = len(estimates)
    center = sum(math.log(e.value) for e in estimates) / count
    below = math.sqrt(sum(math.log(e.value / e.low) ** 2 for e in estimates)) / count
    above = math.sqrt(sum(math.log(e.high / e.value) ** 2 for e in estimates)) / count
    return Estimate(math.exp(center), math.exp(center - below), math.exp(center + above))


def sure_of(entries: Iterable[Entry]) -> list[Entry]:
    """Those that totals and means are over: nothing about them is provisional."""
    return [entry for entry in entries if entry.is_sure]


def mean_rated(entries: Iterable[Entry]) -> Estimate | None:
    """Of those that are sure: the mean score or, if none has one, speedup on listed sizes."""
    sure = sure_of(entries)
    scores = [entry.score for entry in sure if entry.score]
    return geometric_mean(scores or [entry.speedup for entry in sure if entry.speedup])


def fast_p(speedups: Iterable[Estimate], problems: int, p: float) -> Estimate | None:
    """Share of the `problems` that are solved correctly and more than `p` times as fast.

    `speedups` holds one estimate per solved problem; a problem without one counts against the
    share. The interval moves each speedup to the ends of its own, so it says what noise in the
    timing could change, and nothing about other problems. None without any problem.
    """
    if problems <= 0:
        return None
    solved = list(speedups)
    return Estimate(
        sum(s.value > p for s in solved) / problems,
        sum(s.low > p for s in solved) / problems,
        sum(s.high > p for s in solved) / problems,
    )


def fast_curve(speedups: Sequence[Estimate], problems: int) -> list[tuple[float, float]]:
    """Points (p, fast_p) where the curve begins, steps down, and ends."""
    values = sorted(estimate.value for estimate in speedups)
    ends = (1 / CURVE_LARGEST, CURVE_LARGEST)
    ps = sorted({*ends, *(value for value in values if ends[0] < value < ends[1])})
    return [(p, (len(values) - bisect_right(values, p)) / max(problems, 1)) for p in ps]
