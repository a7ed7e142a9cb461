"""Problems against agents: one colour for each best result, on a scale of doublings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from leaderboard_app.boards.groups import Tally
from leaderboard_app.boards.ranking import Entry, Problem
from tasks_app.drawings import NOISE

MOST_COLUMNS = 24
"""Agents shown; those that solved most."""
DEEPEST = 4
"""Doublings after which the colour does not change any more."""
SHADES = (
    ("s4", "1/8× and less"), ("s3", "1/4×"), ("s2", "1/2×"), ("s1", "slower"), ("n", "noise"),
    ("f1", "faster"), ("f2", "2×"), ("f3", "4×"), ("f4", "8× and more"),
    ("unknown", "provisional"), ("failed", "not solved"),
)  # fmt: skip
"""Classes of cells with the speedup from which, or down to which, they are used."""
_KINDS = ("agent", "person", "shipped", "")


@dataclass(frozen=True)
class Cell:
    """An agent's best result of a problem; without an entry it only attempted, or did not."""

    entry: Entry | None = None
    attempted: bool = False

    @property
    def is_filled(self) -> bool:
        """Whether the agent attempted the problem."""
        return self.entry is not None or self.attempted

    @property
    def level(self) -> int:
        """Doublings against the best baseline, rounded away from 0; 0 in the band of noise."""
        rated = self.entry.rated if self.entry else None
        if rated is None:
            return 0
        low, high = rated.low, rated.high
        if low <= 1.0 <= high or abs(math.log(rated.value)) <= math.log1p(NOISE):
            return 0
        doublings = math.log2(rated.value)
        deep = min(DEEPEST, math.ceil(abs(doublings)))
        return deep if doublings > 0 else -deep

    @property
    def shade(self) -> str:
        """Class of the colour: f1 to f4 are faster, s1 to s4 slower, n is noise."""
        if self.entry is None:
            return "failed" if self.attempted else "none"
        if self.entry.rated is None or not self.entry.is_sure:
            return "unknown"
        return f"{'f' if self.level > 0 else 's'}{abs(self.level)}" if self.level else "n"


@dataclass(frozen=True, kw_only=True)
class Column:
    """An agent of the matrix."""

    name: str
    kind: str
    agent_id: int
    solved: int


class Attempt(NamedTuple):
    """The outcome of an agent's attempts at a problem; `entry` is None if it didn't solve it."""

    problem: Problem
    column: Column
    entry: Entry | None
    solved: bool


class Row(NamedTuple):
    """The cells of a problem; `sole` is the agent's name if only one of them attempted it."""

    problem: Problem
    cells: tuple[Cell, ...]
    sole: str

    @property
    def filled(self) -> list[Cell]:
        """Its cells without those of agents that didn't attempt the problem."""
        return [cell for cell in self.cells if cell.is_filled]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Cells by problem, in the order of the columns; `left_out` agents did not fit."""

    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    left_out: int = 0

    @property
    def shared_first(self) -> list[Row]:
        """The rows, those that compare agents first, and then by the agent that is alone."""
        return sorted(self.rows, key=lambda row: row.sole)

    @property
    def attempts(self) -> list[Attempt]:
        """The cells of the problems that were attempted, as rows."""
        return [
            Attempt(row.problem, column, cell.entry, cell.entry is not None)
            for row in self.rows
            for column, cell in zip(self.columns, row.cells, strict=True)
            if cell.is_filled
        ]


def matrix(entries: Iterable[Entry], tried: Mapping[str, Iterable[Problem]]) -> Matrix:
    """Of the best results of each agent; `tried` has what each was judged on, right or wrong."""
    best = {(entry.author.agent, entry.problem): entry for entry in entries}
    all_columns = _columns(best.values(), tried)
    attempted = {name: set(problems) for name, problems in tried.items()}
    problems = sorted({problem for _, problem in best} | set().union(*attempted.values(), set()))
    columns = _by_kind(all_columns[:MOST_COLUMNS], len(problems))
    rows = tuple(_row(problem, columns, best, attempted) for problem in problems)
    return Matrix(
        columns=tuple(columns), rows=rows, left_out=max(0, len(all_columns) - MOST_COLUMNS)
    )


def _row(
    problem: Problem,
    columns: Sequence[Column],
    best: Mapping[tuple[str, Problem], Entry],
    attempted: Mapping[str, set[Problem]],
) -> Row:
    cells = tuple(
        Cell(best.get((column.name, problem)), problem in attempted.get(column.name, ()))
        for column in columns
    )
    names = [column.name for column, cell in zip(columns, cells, strict=True) if cell.is_filled]
    return Row(problem, cells, names[0] if len(names) == 1 else "")


def _by_kind(columns: Sequence[Column], problems: int) -> list[Column]:
    """Kinds apart; one of which no column is a tenth full comes last: a phone shows the first."""
    fullest: dict[str, int] = {}
    for column in columns:
        fullest[column.kind] = max(fullest.get(column.kind, 0), column.solved)
    sparse = {kind for kind, solved in fullest.items() if 10 * solved < problems}
    return sorted(columns, key=lambda each: (each.kind in sparse, _KINDS.index(each.kind)))


def most_solved(tallies: Iterable[Tally]) -> list[str]:
    """Names of the agents that get a column: of others no result needs to be read."""
    solved: dict[str, int] = {}
    for tally in tallies:
        name = tally.author.agent
        solved[name] = solved.get(name, 0) + (tally.accepted > 0)
    return sorted(solved, key=lambda name: (-solved[name], name))[:MOST_COLUMNS]


def _columns(best: Iterable[Entry], tried: Mapping[str, Iterable[Problem]]) -> Sequence[Column]:
    """Those that solved most come first."""
    solved: dict[str, list[Entry]] = {name: [] for name in tried}
    for entry in best:
        solved.setdefault(entry.author.agent, []).append(entry)
    columns = [
        Column(
            name=name,
            kind=entries[0].author.kind if entries else "",
            agent_id=entries[0].author.agent_id if entries else 0,
            solved=len(entries),
        )
        for name, entries in solved.items()
    ]
    return sorted(columns, key=lambda column: (-column.solved, column.name))
