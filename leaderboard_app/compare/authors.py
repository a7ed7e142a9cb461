"""Agents or language models side by side: where they stand on the problems of one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet

from leaderboard_app.boards.best import best_of
from leaderboard_app.boards.ranking import Entry, Estimate, Problem, geometric_mean
from runs_app.integrity.eligibility import eligible_evaluations
from runs_app.models import Agent, Evaluation, LanguageModel
from runs_app.submissions.pictures.plot import Mark, Plot, PlotRow, axis_of, plot, times
from tasks_app.templatetags.display import significant


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What is compared: where evaluations name it, and what it is called."""

    name: str
    column: str
    one: str
    many: str


AGENTS = Kind(name="agent", column="submission__agent", one="agent", many="agents")
MODELS = Kind(
    name="model",
    column="submission__language_model",
    one="language model",
    many="language models",
)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One author's best results, by problem; figures are over problems that all have solved."""

    name: str
    address: str
    entries: Mapping[Problem, Entry]
    common: Estimate | None
    faster: int
    first: int

    @property
    def solved(self) -> int:
        """Problems with a correct result on the device."""
        return len(self.entries)


@dataclass(frozen=True, kw_only=True)
class ProblemRow:
    """One problem with the speedup of each, and whether somebody is clearly first."""

    problem: Problem
    entries: tuple[Entry | None, ...]
    first: int | None


def authors(kind: Kind, names: Sequence[str]) -> dict[str, Agent | LanguageModel]:
    """Those of these names that there are."""
    model: type[Agent] | type[LanguageModel] = Agent if kind is AGENTS else LanguageModel
    return {row.name: row for row in model.objects.filter(name__in=names)}


def offered(kind: Kind, device: str) -> list[str]:
    """Names that have a result on the device."""
    model = Agent if kind is AGENTS else LanguageModel
    having = model.objects.filter(Exists(_rows(device).filter(**{kind.column: OuterRef("pk")})))
    return list(having.order_by("name").values_list("name", flat=True)[:200])


def standings(
    kind: Kind, found: Mapping[str, Agent | LanguageModel], device: str
) -> tuple[list[Standing], list[ProblemRow]]:
    """Each author's standing, and all problems that two or more of them have solved."""
    rows = _rows(device).filter(**{f"{kind.column}__in": list(found.values())})
    by_name: dict[str, dict[Problem, Entry]] = {name: {} for name in found}
    for entry in best_of(rows, (kind.column,)):
        name = entry.author.agent if kind is AGENTS else entry.author.language_model
        by_name[name][entry.problem] = entry
    problems = _problems(list(by_name.values()))
    shared = [p for p in problems if all(p.problem in held for held in by_name.values())]
    return [
        _standing(name, found[name], by_name[name], place, shared)
        for place, name in enumerate(found)
    ], problems


def picture(names: Sequence[str], rows: Sequence[ProblemRow]) -> Plot | None:
    """The speedup of each on each problem, over its best baseline."""
    shown = [row for row in rows if any(entry and entry.speedup for entry in row.entries)]
    speedups = [e.speedup for row in shown for e in row.entries if e and e.speedup]
    if not speedups:
        return None
    axis = axis_of(end for s in speedups for end in (s.value, s.low, s.high))
    lines = []
    for row in shown:
        marks: list[Mark] = []
        for place, entry in enumerate(row.entries):
            if entry and entry.speedup:
                each = entry.speedup
                marks.append(axis.mark(f"author-{place}", each.value, each.low, each.high))
        first = "alike" if row.first is None else names[row.first]
        lines.append(PlotRow(label=_label(row.problem), value=first, marks=tuple(marks)))
    kinds = [(f"author-{place}", name) for place, name in enumerate(names)]
    return plot(axis, lines, "Speedup over the best baseline, with 95 % intervals.", kinds)


def shown_ratio(standing: Standing, pinned: Standing) -> str:
    """How fast one is on the shared problems, the pinned one being 1."""
    if standing.common is None or pinned.common is None:
        return "–"
    return times(float(significant(standing.common.value / pinned.common.value)))


def _rows(device: str) -> QuerySet[Evaluation]:
    """What counts on the device; what was measured elsewhere stands on a device of its own."""
    return eligible_evaluations().filter(device=device, task_version__task__contaminated="")


def _label(problem: Problem) -> str:
    return problem.task if problem.direction == "forward" else f"{problem.task}, backward"


def _problems(held: Sequence[Mapping[Problem, Entry]]) -> list[ProblemRow]:
    every = sorted({problem for each in held for problem in each})
    rows = []
    for problem in every:
        entries = tuple(each.get(problem) for each in held)
        if sum(entry is not None for entry in entries) > 1 or len(held) == 1:
            rows.append(ProblemRow(problem=problem, entries=entries, first=_first(entries)))
    return rows


def _first(entries: Sequence[Entry | None]) -> int | None:
    """Whose time is shown to be the shortest: its interval lies below all others."""
    known = [(place, entry.latency) for place, entry in enumerate(entries) if entry]
    place, best = min(known, key=lambda pair: pair[1].value)
    others = [latency for other, latency in known if other != place]
    return place if others and all(best.high < latency.low for latency in others) else None


def _standing(
    name: str,
    author: Agent | LanguageModel,
    entries: Mapping[Problem, Entry],
    place: int,
    shared: Sequence[ProblemRow],
) -> Standing:
    own = [entry for row in shared if (entry := row.entries[place]) is not None]
    speedups = [entry.speedup for entry in own if entry.speedup is not None]
    return Standing(
        name=name,
        address=author.get_absolute_url(),
        entries=entries,
        common=geometric_mean(speedups),
        faster=sum(speedup.low > 1 for speedup in speedups),
        first=sum(row.first == place for row in shared),
    )
