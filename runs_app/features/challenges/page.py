"""What pages of challenges and entries show."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.paginator import Page
from django.db.models import QuerySet
from django.forms import Form
from django.utils.text import Truncator

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.work.estimate import estimate, in_words
from runs_app.features.challenges.figures import (
    MEASURES,
    ORDER,
    Contender,
    EntryResult,
    Measure,
    Spread,
)
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.features.challenges.services import Plan
from runs_app.models import Evaluation, Quarantine
from runs_app.submitting.pictures.plot import Plot, PlotRow, axis_of, plot
from tasks_app.models import TaskVersion
from tasks_app.numbers import counted, percent, times, usd

_REPORTED = "as reported"
_FINE = (Quarantine.NONE, Quarantine.CLEARED)
_MEASURES = {measure.name: measure for measure in MEASURES}
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|(?=\n)|$)")
_LONGEST_SENTENCE = 240  # chosen: three lines of a page
_WORDS = {
    "hidden_correct": "solved {} of the tasks, hidden workloads included",
    "score": "has a score of {}",
    "correct": "solved {} of the tasks on listed workloads",
}


@dataclass(frozen=True)
class Cell:
    """A figure as text, and its range over repeats; `value` is a dash if it isn't known."""

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
    """The best time so far on one task: `values` are the first time over it, by evaluation.

    As in the choice of kernels, the rough times of test mode count only if there are no others,
    and quarantined ones never do.
    """

    task: str
    values: tuple[float | None, ...]
    first_ns: float | None
    best_ns: float | None
    best_at: int
    budget: int


@dataclass(frozen=True, kw_only=True)
class ChallengesPage:
    """All challenges, newest first."""

    page: Page[Challenge]
    may_make: bool
    now: datetime


@dataclass(frozen=True, kw_only=True)
class NewChallengePage:
    """The form of a new challenge; with a `plan` it shows what would be made, and `busy` how long
    an entry that uses its whole budget keeps the device busy, in words; empty if that's unknown.
    """

    form: Form
    plan: Plan | None = None
    busy: str = ""


@dataclass(frozen=True, kw_only=True)
class ChallengePage:
    """A challenge with its contenders side by side; `page` holds its entries."""

    challenge: Challenge
    about: str
    versions: QuerySet[TaskVersion]
    is_open: bool
    now: datetime
    may_end: bool
    contenders: list[Contender]
    winner: Winner | None
    lines: list[Line]
    picture: Plot | None
    page: Page[EntryResult]
    host: str
    form: Form


@dataclass(frozen=True, kw_only=True)
class EntryPage:
    """An entry: its remaining budget, its submissions, and their results.

    `evaluations` are the newest ones with their numbers. `token` is only shown right after it was
    created. `ranking` says how far the ranking is, in words.
    """

    entry: Entry
    challenge: Challenge
    result: EntryResult
    figures: list[tuple[str, str, str]]
    spent: list[tuple[str, str]]
    ranking: str
    budget: int
    curves: list[Curve]
    evaluations: list[tuple[int, Evaluation]]
    all_evaluations: int
    sees_sources: bool
    sees_transcript: bool
    has_transcript: bool
    may_finish: bool
    may_write: bool
    may_report: bool
    form: Form
    token: str
    host: str
    now: datetime


def about(challenge: Challenge) -> str:
    """What it is about: the description's first sentence; without one, how many tasks it has."""
    found = _SENTENCE.match(challenge.description.strip())
    if found:
        return Truncator(found[0]).chars(_LONGEST_SENTENCE)
    tasks = counted(challenge.versions.count(), "task")
    return f"Agents compete on {tasks}, each with its own budget."


def busy(plan: Plan) -> str:
    """How long an entry that uses its whole budget keeps the device busy; empty if unknown."""
    device, tasks = plan.challenge.device_id, len(plan.versions)
    one, ranked = estimate(device, Mode.QUICK), estimate(device, Mode.RANKED)
    if one is None or ranked is None:
        return ""
    return in_words(tasks * (plan.challenge.evaluations * one.median_s + ranked.median_s))


def lines(contenders: Sequence[Contender]) -> list[Line]:
    """Measures side by side, as medians with ranges over repeats; without those nobody has."""
    found = []
    for measure in MEASURES:
        spreads = [contender.spread(measure.name) for contender in contenders]
        if any(spreads):
            found.append(Line(*measure.words, tuple(_cell(measure, each) for each in spreads)))
    return found


def picture(contenders: Sequence[Contender]) -> Plot | None:
    """Listed and unlisted speedup of each contender, with the range over repeats."""
    found = [(each, each.spread("speedup"), each.spread("unlisted_speedup")) for each in contenders]
    spreads = [spread for _, *both in found for spread in both if spread]
    values = [end for spread in spreads for end in (spread.median, spread.low, spread.high)]
    if not values:
        return None
    axis = axis_of(values)
    rows = [
        PlotRow(
            label=each.name,
            note=counted(len(each.results), "repeat") + ("" if each.is_sure else ", provisional"),
            value=" → ".join(times(spread.median) for spread in both if spread),
            marks=tuple(
                axis.mark(f"author-{place}", spread.median, spread.low, spread.high)
                for place, spread in enumerate(both)
                if spread
            ),
        )
        for each, *both in found
        if any(both)
    ]
    sizes = [("author-0", "listed sizes"), ("author-1", "unlisted sizes")]
    kinds = [kind for place, kind in enumerate(sizes) if any(both[place] for _, *both in found)]
    words = (
        "Geometric mean of the speedups over the best baseline. Marks show the median and the range"
        " of the repeats."
    )
    return plot(axis, rows, words, kinds)


def figures(result: EntryResult) -> list[tuple[str, str, str]]:
    """Name, note and value of each measure; those of hidden workloads once the entry has ended."""
    found = []
    for measure in MEASURES:
        if measure.hidden and not result.is_final:
            continue
        value = measure.read(result)
        found.append((*measure.words, "–" if value is None else _shown(measure, value)))
    return found


def curves(result: EntryResult, evaluations: Sequence[Evaluation]) -> list[Curve]:
    """One curve for each task that has evaluations, without those that cost nothing."""
    budget = result.entry.challenge.evaluations
    costly = [
        row
        for row in evaluations
        if row.verdict != Verdict.SYSTEM_ERROR and row.mode != Mode.COMPILE
    ]
    found = []
    for task in result.tasks:
        own = [row for row in costly if row.task_version_id == task.version.pk]
        if own:
            found.append(_curve(task.version.task.slug, own, budget))
    return found


def spent(entry: Entry) -> list[tuple[str, str]]:
    """The spending that an entry reports, in words, and its limit."""
    words = []
    limit = entry.challenge.usd
    if entry.usd is not None:
        words.append(
            ("Cost", usd(entry.usd) + (f" of {usd(limit)}, " if limit else ", ") + _REPORTED)
        )
    elif limit:
        words.append(("Cost", f"at most {usd(limit)}; nothing reported yet"))
    if entry.tokens is not None:
        words.append(("Tokens", f"{entry.tokens:,}, {_REPORTED}"))
    return words


def _curve(task: str, evaluations: Sequence[Evaluation], budget: int) -> Curve:
    known = [
        (place, row.latency_ns, row.mode == Mode.TEST)
        for place, row in enumerate(evaluations)
        if row.latency_ns and row.quarantine in _FINE
    ]
    timed = [each for each in known if not each[2]] or known
    values: list[float | None] = [None] * len(evaluations)
    best_ns, best_at = math.inf, 0
    for place, time_ns, _ in timed:
        if time_ns < best_ns:
            best_ns, best_at = time_ns, place + 1
            values[place] = values[-1] = timed[0][1] / time_ns
    return Curve(
        task=task,
        values=tuple(values),
        first_ns=timed[0][1] if timed else None,
        best_ns=best_ns if timed else None,
        best_at=best_at,
        budget=budget,
    )


def _cell(measure: Measure, spread: Spread | None) -> Cell:
    if spread is None:
        return Cell("–")
    low, middle, high = (
        _shown(measure, value) for value in (spread.low, spread.median, spread.high)
    )
    return Cell(middle, "" if low == high else f"{low} to {high}")


def _shown(measure: Measure, value: float) -> str:
    return percent(value) if measure.form == "percent" else times(value)


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
    known = [name for name in ORDER if first.median(name)]
    if not known:
        return Winner("Nobody leads", "No entry has solved a task.", "")
    apart = [
        name for name in ORDER if any(first.median(name) != o.median(name) for o in others[:1])
    ]
    if others and not apart:
        sentence = f"{first.name} and {others[0].name} are tied on every measure that counts."
        return Winner("A tie" if challenge.closed_at else "A tie so far", sentence, "")
    name = (apart or known)[0]
    said = _WORDS[name].format(_figure(name, first))
    against = f", against {_figure(name, others[0])} for {others[0].name}" if others else ""
    alone = "" if others else "; nobody else entered"
    if challenge.closed_at is not None:
        return Winner(f"{first.name} wins", f"It {said}{against}{alone}.", "good")
    decides = "hidden workloads, which are measured at the end, decide who wins"
    headline = f"{first.name} leads so far"
    return Winner(headline, f"It {said}{against}{alone}; {decides}.", "")


def _figure(name: str, contender: Contender) -> str:
    spread = contender.spread(name)
    return _shown(_MEASURES[name], spread.median) if spread else "none"
