"""What pages of challenges and entries show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.challenges.figures import MEASURES, Contender, EntryResult, Measure, Spread
from runs_app.models import Entry, Evaluation, Quarantine
from runs_app.submissions.pictures.plot import Plot, PlotRow, axis_of, plot, times
from tasks_app.templatetags.display import percent, significant

_WIDTH, _HEIGHT = 600.0, 90.0
_FINE = (Quarantine.NONE, Quarantine.CLEARED)
_WORDS = {
    "correct": ("Correct", "on public workloads"),
    "hidden_correct": ("Correct", "on hidden ones, too"),
    "kept_correct": ("Correct", "kept"),
    "fast": ("fast₁", "public, over the best baseline"),
    "hidden_fast": ("fast₁", "hidden, over eager"),
    "speedup": ("Speedup", "public, over eager"),
    "hidden_speedup": ("Speedup", "hidden, over eager"),
    "kept_speed": ("Speedup", "kept"),
}
assert set(_WORDS) == {measure.name for measure in MEASURES}


@dataclass(frozen=True)
class Cell:
    """A figure in words, and its range over repeats; `value` is a dash where it is not known."""

    value: str
    range: str = ""


@dataclass(frozen=True)
class Line:
    """One measure of all contenders, in their order."""

    name: str
    note: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Best-so-far of one task, in a box of 600 by 90: the whole width is the budget.

    `steps` are points of a polyline; `right` are dots at the times of correct evaluations, `wrong`
    places of all others. A lower time is drawn higher up. As where kernels are chosen, rough times
    of the mode test count only where there is no other, and those in quarantine never.
    """

    task: str
    steps: str
    right: tuple[tuple[float, float], ...]
    wrong: tuple[float, ...]
    first_ns: float | None
    best_ns: float | None
    best_at: int
    evaluations: int
    budget: int


def lines(contenders: Sequence[Contender]) -> list[Line]:
    """All measures side by side: medians, and ranges where there are repeats."""
    return [
        Line(
            *_WORDS[measure.name],
            tuple(_cell(measure, contender.spread(measure.read)) for contender in contenders),
        )
        for measure in MEASURES
    ]


def picture(contenders: Sequence[Contender]) -> Plot | None:
    """Public and hidden speedup of each, with the range over repeats."""
    reads = {measure.name: measure.read for measure in MEASURES}
    found = [
        (each, each.spread(reads["speedup"]), each.spread(reads["hidden_speedup"]))
        for each in contenders
    ]
    spreads = [spread for _, *both in found for spread in both if spread]
    values = [end for spread in spreads for end in (spread.median, spread.low, spread.high)]
    if not values:
        return None
    axis = axis_of(values)
    rows = [
        PlotRow(
            label=each.name,
            note=_repeats(len(each.results)),
            value=" → ".join(_times(spread.median) if spread else "–" for spread in both),
            marks=tuple(
                axis.mark(f"author-{place}", spread.median, spread.low, spread.high)
                for place, spread in enumerate(both)
                if spread
            ),
        )
        for each, *both in found
        if any(both)
    ]
    kinds = [("author-0", "public workloads"), ("author-1", "hidden workloads")]
    words = "Geometric mean of speedups over eager: the median of repeats, and their range."
    return plot(axis, rows, words, kinds)


def figures(result: EntryResult) -> list[tuple[str, str, str]]:
    """The measures of one entry: name, note and value; those of hidden workloads at its end."""
    found = []
    for measure in MEASURES:
        if measure.hidden and not result.is_final:
            continue
        value = measure.read(result)
        found.append((*_WORDS[measure.name], "–" if value is None else _shown(measure, value)))
    return found


def curves(result: EntryResult, evaluations: Sequence[Evaluation]) -> list[Curve]:
    """One curve for each task that has evaluations; those that failed by our fault are left out."""
    budget = result.entry.challenge.evaluations
    found = []
    for task in result.tasks:
        own = [
            row
            for row in evaluations
            if row.task_version_id == task.version.pk and row.verdict != Verdict.SYSTEM_ERROR
        ]
        if own:
            found.append(_curve(task.version.task.slug, own, budget))
    return found


def spent(entry: Entry) -> list[tuple[str, str]]:
    """What an entry reports to have spent, in words."""
    words = []
    if entry.usd is not None:
        limit = entry.challenge.usd
        words.append(("US dollars", f"{entry.usd:.2f}" + (f" of {limit:.2f}" if limit else "")))
    if entry.tokens is not None:
        words.append(("Tokens", f"{entry.tokens:,}"))
    return words


def _curve(task: str, evaluations: Sequence[Evaluation], budget: int) -> Curve:
    width = _WIDTH / max(budget, len(evaluations))
    known = [(place, row.latency_ns) for place, row in enumerate(evaluations) if row.latency_ns]
    logs = [math.log(value) for _, value in known]
    low, high = (min(logs), max(logs)) if logs else (0.0, 0.0)

    def at(place: int, value: float) -> tuple[float, float]:
        share = (math.log(value) - low) / (high - low) if high > low else 0.5
        return round((place + 0.5) * width, 1), round(8 + share * (_HEIGHT - 24), 1)

    best: float | None = None
    best_at = 0
    points: list[tuple[float, float]] = []
    counted = [(place, value) for place, value in known if evaluations[place].quarantine in _FINE]
    timed = [(place, value) for place, value in counted if evaluations[place].mode != Mode.TEST]
    for place, value in timed or counted:
        if best is None or value < best:
            x, y = at(place, value)
            points += [(x, points[-1][1])] if points else []
            points.append((x, y))
            best, best_at = value, place + 1
    if points:
        points.append((round(len(evaluations) * width, 1), points[-1][1]))
    right = {place for place, _ in known}
    over = [place for place, row in enumerate(evaluations) if row.is_over and place not in right]
    return Curve(
        task=task,
        steps=" ".join(f"{x},{y}" for x, y in points),
        right=tuple(at(place, value) for place, value in known),
        wrong=tuple(round((place + 0.5) * width, 1) for place in over),
        first_ns=(timed or counted)[0][1] if counted else None,
        best_ns=best,
        best_at=best_at,
        evaluations=len(evaluations),
        budget=budget,
    )


def _cell(measure: Measure, spread: Spread | None) -> Cell:
    if spread is None:
        return Cell("–")
    if spread.count == 1:
        return Cell(_shown(measure, spread.median))
    ends = f"{_shown(measure, spread.low)} to {_shown(measure, spread.high)}"
    return Cell(_shown(measure, spread.median), ends)


def _shown(measure: Measure, value: float) -> str:
    return percent(value) if measure.form == "percent" else _times(value)


def _times(value: float) -> str:
    return times(float(significant(value)))


def _repeats(count: int) -> str:
    return f"{count} repeat{'' if count == 1 else 's'}"
