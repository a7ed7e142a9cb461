"""Agents or language models side by side: where they stand on the problems of one device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.urls import reverse

from leaderboard_app.boards.best import best_of
from leaderboard_app.boards.paired import lead
from leaderboard_app.boards.ranking import Entry, Problem, geometric_mean
from leaderboard_app.boards.selectors import default_device
from runs_app.core.integrity.eligibility import eligible_evaluations
from runs_app.core.integrity.ranking import Estimate
from runs_app.core.integrity.tags import rated, state_chip
from runs_app.features.compare.choice import NONE, Cell, Kind, Row, plain
from runs_app.models import Agent, Evaluation, LanguageModel
from runs_app.optimiser.selectors.authors import visible_agents, visible_language_models
from runs_app.submitting.pictures.plot import Plot, PlotRow, axis_of, plot
from tasks_app.numbers import duration_text, times
from tasks_app.people import Viewer
from tasks_app.templatetags.display import speedup


@dataclass(frozen=True, kw_only=True)
class AuthorKind(Kind):
    """Agents or language models, and where evaluations name them."""

    column: str


AGENTS = AuthorKind(name="agent", one="agent", many="agents", column="submission__agent")
MODELS = AuthorKind(
    name="model",
    one="language model",
    many="language models",
    column="submission__language_model",
)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One author's best results in numbers; figures are over shared problems.

    `first` is over those on which two or more have a final result; None if there are none.
    """

    address: str
    solved: int
    shared: tuple[Entry, ...]
    common: Estimate | None
    faster: int
    first: int | None


@dataclass(frozen=True, kw_only=True)
class ProblemRow:
    """One problem with the result of each."""

    problem: Problem
    entries: tuple[Entry | None, ...]

    @cached_property
    def compared(self) -> list[tuple[int, Entry]]:
        """The final results and their places: scores or, if nobody has one, listed speedups."""
        final = [(place, e) for place, e in enumerate(self.entries) if e and e.is_sure]
        return [(place, entry) for place, entry in final if entry.score] or final

    @property
    def is_shared(self) -> bool:
        """Whether figures are over it: each has a final result of the same kind."""
        return len(self.compared) == len(self.entries)

    @property
    def first(self) -> int | None:
        """Whose final result is surely the best: its interval lies apart from all others."""
        if len(self.compared) < 2:
            return None
        place, best = max(self.compared, key=lambda pair: pair[1].merit)
        others = [entry for other, entry in self.compared if other != place]
        return place if all(_is_better(best, other) for other in others) else None


def authors(
    kind: AuthorKind, names: Sequence[str], user: Viewer
) -> dict[str, Agent | LanguageModel]:
    """Authors of these names, as far as `user` may know of them."""
    rows: QuerySet[Agent] | QuerySet[LanguageModel]
    rows = visible_agents(user) if kind is AGENTS else visible_language_models(user)
    return {row.name: row for row in rows.filter(name__in=names)}


def device_of(kind: AuthorKind, found: Iterable[Agent | LanguageModel]) -> str:
    """The device with results of most of these authors, then for most tasks; else the board's."""
    mine = eligible_evaluations().filter(**{f"{kind.column}__in": list(found)})
    names = Count(kind.column, distinct=True)
    counted = (
        mine.order_by()
        .values_list("device")
        .annotate(names=names, tasks=Count("task_version", distinct=True))
    )
    first = counted.order_by("-names", "-tasks", "device").first()
    return str(first[0]) if first else default_device()


def offered(kind: AuthorKind, device: str) -> list[str]:
    """Names that have a result on the device."""
    model = Agent if kind is AGENTS else LanguageModel
    having = model.objects.filter(Exists(_rows(device).filter(**{kind.column: OuterRef("pk")})))
    return list(having.order_by("name").values_list("name", flat=True)[:200])


def standings(
    kind: AuthorKind, found: Mapping[str, Agent | LanguageModel], device: str
) -> tuple[dict[str, Standing], list[ProblemRow]]:
    """Each author's standing, and all problems that two or more of them have solved."""
    rows = _rows(device).filter(**{f"{kind.column}__in": list(found.values())})
    by_name: dict[str, dict[Problem, Entry]] = {name: {} for name in found}
    for entry in best_of(rows, (kind.column,)):
        name = entry.author.agent if kind is AGENTS else entry.author.language_model
        by_name[name][entry.problem] = entry
    problems = _problems(list(by_name.values()))
    shared = [row for row in problems if row.is_shared]
    return {
        name: _standing(place, author, len(by_name[name]), problems, shared)
        for place, (name, author) in enumerate(found.items())
    }, problems


def picture(names: Sequence[str], rows: Sequence[ProblemRow]) -> Plot | None:
    """The final scores on each problem where two have one; without any, listed speedups."""
    shown = [
        (row, values)
        for row in rows
        if len(values := [(place, e.rated) for place, e in row.compared if e.rated]) > 1
    ]
    if not shown:
        return None
    ends = (end for _, values in shown for _, each in values for end in (each.low, each.high))
    axis = axis_of(ends)
    lines = [
        PlotRow(
            label=row.problem.label,
            value="alike" if row.first is None else names[row.first],
            marks=tuple(axis.mark(f"author-{p}", e.value, e.low, e.high) for p, e in values),
        )
        for row, values in shown
    ]
    kinds = [(f"author-{place}", name) for place, name in enumerate(names)]
    return plot(axis, lines, "Final scores with 95 % intervals.", kinds)


def figures(found: Mapping[str, Standing], pinned: str) -> list[Row]:
    """Each standing in numbers; on the shared problems, also as a multiple of the pinned one."""
    every, base = list(found.values()), found[pinned]
    leads = (lead(each.shared, base.shared) for each in every)
    ratios = (
        NONE
        if ahead is None
        else times(1.0)
        if each is base
        else f"{times(ahead.ratio.mean)} ({ahead.interval})"
        for each, ahead in zip(every, leads, strict=True)
    )
    return [
        plain("Tasks solved", (each.solved for each in every)),
        plain("Mean score or listed speedup", map(_mean, every)),
        plain("Relative to the pinned one", ratios),
        plain(
            "Faster than the best baseline",
            (each.faster if each.shared else NONE for each in every),
        ),
        plain("Clear wins on tasks that two or more solved", map(_wins, every)),
    ]


def scores(rows: Sequence[ProblemRow]) -> list[Row]:
    """Each result on each of these problems."""
    held = [(row.problem, tuple(map(_score, row.entries))) for row in rows]
    return [Row(one.label, cells, reverse("task", args=[one.task])) for one, cells in held]


def _mean(standing: Standing) -> str:
    mean = standing.common
    return speedup(mean.value, mean.low, mean.high) if mean else NONE


def _wins(standing: Standing) -> object:
    return NONE if standing.first is None else standing.first


def _score(entry: Entry | None) -> Cell:
    if entry is None:
        return Cell(NONE)
    text = rated(entry) if entry.rated else duration_text(entry.latency.value)
    page = reverse("submission", args=[entry.submission_id])
    note = "" if entry.is_sure else state_chip(entry)
    return Cell(text, note, address=f"{page}?evaluation={entry.evaluation_id}")


def _rows(device: str) -> QuerySet[Evaluation]:
    """What counts on the device; what was measured elsewhere stands on a device of its own."""
    return eligible_evaluations().filter(device=device, task_version__task__contaminated="")


def _problems(held: Sequence[Mapping[Problem, Entry]]) -> list[ProblemRow]:
    every = sorted({problem for each in held for problem in each})
    rows = []
    for problem in every:
        entries = tuple(each.get(problem) for each in held)
        if sum(entry is not None for entry in entries) > 1 or len(held) == 1:
            rows.append(ProblemRow(problem=problem, entries=entries))
    return rows


def _is_better(one: Entry, other: Entry) -> bool:
    """Whether the score says so; without any, the time does."""
    if one.score and other.score:
        return one.score.low > other.score.high
    return one.latency.high < other.latency.low


def _standing(
    place: int,
    author: Agent | LanguageModel,
    solved: int,
    problems: Sequence[ProblemRow],
    shared: Sequence[ProblemRow],
) -> Standing:
    contests = [row for row in problems if len(row.compared) > 1]
    own = [entry for row in shared if (entry := row.entries[place]) is not None]
    values = [entry.rated for entry in own if entry.rated is not None]
    return Standing(
        address=author.get_absolute_url(),
        solved=solved,
        shared=tuple(own),
        common=geometric_mean(values),
        faster=sum(value.low > 1 for value in values),
        first=sum(row.first == place for row in contests) if contests else None,
    )
