"""Makes the board that a query asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, F, QuerySet, Sum

from leaderboard_app.boards import selectors
from leaderboard_app.boards.best import RankedEntries, best_of, ranked_entries
from leaderboard_app.boards.groups import (
    Group,
    Over,
    Section,
    Standing,
    Tally,
    attempts,
    group_entries,
    in_common,
    rank_groups,
)
from leaderboard_app.boards.history import Day, Leader, days_of
from leaderboard_app.boards.leading import leaders
from leaderboard_app.boards.matrix import Matrix, matrix, most_solved
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.ranking import Entry, Problem
from leaderboard_app.boards.selectors import BoardTask
from leaderboard_app.boards.tables import GROUP_VALUES
from runs_app.core.integrity.ranking import OWNER, Ranked
from runs_app.models import Agent, Evaluation, LanguageModelCall, Run
from runs_app.optimiser.selectors.runs import has_entry, in_words
from runs_app.optimiser.selectors.spending import known_sum

_OWNERS = {
    By.SUBMISSION: OWNER,
    By.MATRIX: ("submission__agent",),
    By.AGENT: ("submission__agent",),
    By.MODEL: ("submission__language_model",),
}
"""Columns under which results are put together; the fastest of each problem stands for them."""
_KINDS = (Agent.Kind.AGENT.value, Agent.Kind.PERSON.value, Agent.Kind.SHIPPED.value)


@dataclass(frozen=True, kw_only=True)
class Board:
    """A board: of `leaders`, `entries`, `sections` or the `matrix`, as the query says.

    Beside the entries of one task, `days` has how the record of each of its problems fell.

    `contaminated` are the tasks of the selection that are marked so: they are left out, unless
    the query counts all.
    """

    query: Query
    problems: tuple[Problem, ...]
    contaminated: tuple[BoardTask, ...] = ()
    entries: RankedEntries = field(default_factory=RankedEntries)
    days: Mapping[Problem, tuple[Day, ...]] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    leaders: tuple[Leader, ...] = ()
    matrix: Matrix = field(default_factory=Matrix)

    @property
    def rows(self) -> Sequence[object]:
        """The rows that its page shows: leaders, entries, lines of the matrix, or names."""
        if self.query.by.is_grouped:
            return [Standing.of(section, r) for section in self.sections for r in section.groups]
        if self.query.by is By.MATRIX:
            return self.matrix.shared_first
        return self.leaders if self.query.by is By.LEADERS else self.entries

    @property
    def whole(self) -> Sequence[object]:
        """The rows of its file: of a matrix the attempts, else those of its page."""
        return self.matrix.attempts if self.query.by is By.MATRIX else self.rows

    @property
    def groups(self) -> tuple[Ranked[Group], ...]:
        """The rows of all sections."""
        return tuple(ranked for section in self.sections for ranked in section.groups)


def board(query: Query, tasks: Sequence[BoardTask]) -> Board:
    """The board for `query`."""
    problems = selectors.problems_of(query, tasks)
    marked = tuple(t for t in selectors.chosen_tasks(query, tasks) if t.contaminated)
    found = Board(query=query, problems=problems, contaminated=marked)
    rows = selectors.eligible(query)
    if query.by is By.LEADERS:
        return replace(found, leaders=leaders(query, rows, problems, tasks))
    if query.by is By.SUBMISSION:
        entries = ranked_entries(rows, _OWNERS[query.by], query.sort)
        return replace(found, entries=entries, days=days_of(rows) if query.task else {})
    tallies = selectors.tallies(selectors.judged(query), query.by)
    if query.by is By.MATRIX:
        return replace(found, matrix=_matrix(query, rows, tallies))
    return replace(found, sections=tuple(_sections(query, rows, tallies, problems)))


def top(query: Query, limit: int) -> list[Ranked[Entry]]:
    """The first rows of the board of a task."""
    return ranked_entries(selectors.eligible(query), OWNER, query.sort)[:limit]


def _matrix(query: Query, rows: QuerySet[Evaluation], tallies: Sequence[Tally]) -> Matrix:
    if not query.is_narrow:
        rows = rows.filter(submission__agent__name__in=most_solved(tallies))
    return matrix(best_of(rows, _OWNERS[query.by]), attempts(tallies, By.AGENT.owner))


def _sections(
    query: Query,
    rows: QuerySet[Evaluation],
    tallies: Sequence[Tally],
    problems: Sequence[Problem],
) -> list[Section]:
    kinds = _KINDS if query.by is By.AGENT else ("",)
    sections = []
    for kind in kinds:
        mine = [tally for tally in tallies if not kind or tally.author.kind == kind]
        if mine:
            own = rows.filter(submission__agent__kind=kind) if kind else rows
            sections.append(_section(query, kind, own, mine, problems))
    return [section for section in sections if section.groups]


def _section(
    query: Query,
    kind: str,
    rows: QuerySet[Evaluation],
    tallies: Sequence[Tally],
    problems: Sequence[Problem],
) -> Section:
    owner, columns = query.by.owner, _OWNERS[query.by]
    tried = attempts(tallies, owner)
    over, names, counted = query.over, tuple(tried), set(problems)
    if over is Over.COMMON:
        names, shared = in_common(tried)
        over, names, counted = (over, names, shared) if names else (Over.OWN, tuple(tried), counted)
    if over is Over.COMMON:  # who is left out may have most of the results
        rows = rows.filter(**{f"{columns[0]}__name__in": names})
    mine = [tally for tally in tallies if owner(tally.author) in names]
    groups = group_entries(best_of(rows, columns), mine, owner, counted, query.p, over)
    groups = with_spending(query, groups, {problem.task for problem in counted})
    return Section(
        kind=kind,
        over=over,
        problems=len(counted),
        groups=tuple(rank_groups(groups, GROUP_VALUES[query.sort])),
        left_out=tuple(sorted(set(tried) - set(names))),
        tasks=tuple(sorted({p.task for p in counted})) if over is Over.COMMON else (),
    )


def with_spending(query: Query, groups: Sequence[Group], tasks: Collection[str]) -> list[Group]:
    """The groups with the money and tokens of their public runs on these tasks."""
    rows = _spent(query, tasks) if groups else ()
    spent = {
        name: {"usd": usd, "tokens": tokens, "runs": in_words(*counts)}
        for name, usd, tokens, *counts in rows
    }
    return [replace(group, **spent.get(group.owner, {})) for group in groups]


def _spent(query: Query, tasks: Collection[str]) -> Iterable[tuple[Any, ...]]:
    """For each name: money and tokens; its runs, their tasks, and how many submitted a kernel."""
    runs = Run.objects.filter(
        private=False, device=query.device, task_version__task__slug__in=tasks
    ).order_by()
    if query.by is By.AGENT:
        return runs.values_list("agent__name").annotate(
            usd=known_sum("usd"),
            tokens=Sum("tokens"),
            runs=Count("pk"),
            tasks=Count("task_version__task", distinct=True),
            submitted=Count("pk", filter=has_entry("pk")),
        )
    calls = LanguageModelCall.objects.filter(run__in=runs.values("pk")).order_by()
    return calls.values_list("language_model__name").annotate(
        usd=known_sum("cost_usd"),
        tokens=Sum(F("tokens_in") + F("tokens_out")),
        runs=Count("run", distinct=True),
        tasks=Count("run__task_version__task", distinct=True),
        submitted=Count("run", distinct=True, filter=has_entry("run")),
    )
