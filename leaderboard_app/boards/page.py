"""Collects what the leaderboard's page shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.paginator import Page, Paginator

from leaderboard_app.boards.board import Board
from leaderboard_app.boards.charts import cost_figure, fast_p_figure, progress_figure
from leaderboard_app.boards.groups import Over
from leaderboard_app.boards.headline import Headline, headline, leading
from leaderboard_app.boards.history import climbs, in_words
from leaderboard_app.boards.matrix import SHADES
from leaderboard_app.boards.query import By, Choices, Query, QueryError, default_sort
from leaderboard_app.boards.ranking import THRESHOLDS, Entry, Problem, Sort
from leaderboard_app.boards.selectors import elsewhere
from leaderboard_app.boards.tables import TABLES
from runs_app.core.integrity.board_place import PAGE_ROWS
from runs_app.core.integrity.ranking import Ranked
from runs_app.models import Device
from runs_app.submitting.remarks import likenesses
from tasks_app import drawings
from tasks_app.columns import Table
from tasks_app.people import Viewer
from tasks_app.selectors import find_task

_TABS = {
    By.LEADERS: "Leaders",
    By.MATRIX: "Matrix",
    By.SUBMISSION: "Submissions",
    By.AGENT: "Agents",
    By.MODEL: "Models",
}
_SORTS = {
    Sort.SCORE: "score",
    Sort.SPEEDUP: "speedup on listed sizes",
    Sort.FAST: "fast_p",
    Sort.LATENCY: "time",
    Sort.CORRECT: "correct",
    Sort.P: "P score",
    Sort.FLOOR: "share of the limit",
    Sort.NEWEST: "newest record",
    Sort.TASK: "task",
}
_FOLDED = (
    "scenario", "dtype", "direction", "agent", "model", "since", "until", "verified", "trusted",
    "same_bits", "batch_bits", "graph", "contaminated",
)  # fmt: skip
"""Filters that are folded away below the row; the page shows how many of them are set."""


@dataclass(frozen=True, kw_only=True)
class BoardPage:
    """A page of a board, its filters, and the charts of its kind; templates get the fields."""

    board: Board
    query: Query
    by: str
    columns: Table
    page: Page[object]
    problems: int
    tasks: int  # of which a problem is one direction
    final: int  # leaders that aren't provisional
    provisional: int
    contaminated: Mapping[str, str]  # the reason, by task
    with_contaminated: str
    without_contaminated: str
    device: Device | None
    devices: Iterable[Device]
    choices: Choices
    directions: Sequence[tuple[str, str]]  # with addresses, if the board is of one of several
    tabs: Sequence[tuple[str, str, str]]
    sorts: Sequence[tuple[str, str]]
    sort_words: str
    export: str
    folded: int
    has_costs: bool
    has_scores: bool
    error: QueryError | None
    fragment: bool
    thresholds: Sequence[float] = THRESHOLDS
    shades: Sequence[tuple[str, str]] = SHADES
    headline: Headline | None = None
    elsewhere: Sequence[tuple[str, str]] = ()
    axis: drawings.Axis | None = None
    progress: Mapping[str, object] | None = None
    records: Sequence[tuple[Problem, Sequence[float], str]] = ()
    figure: Mapping[str, object] | None = None
    cost: Mapping[str, object] | None = None
    curve: Sequence[tuple[str, Sequence[float | None]]] = ()
    likeness: Mapping[str, str] = field(default_factory=dict)


def board_page(
    board: Board,
    choices: Choices,
    number: str | None,
    *,
    reader: Viewer,
    error: QueryError | None = None,
    fragment: bool = False,
) -> BoardPage:
    """The board's page with this number; `error` says what is wrong with the address."""
    query = board.query
    device = Device.objects.filter(slug=query.device).first()
    page = Paginator(board.rows, PAGE_ROWS).get_page(number)
    directions = choices.tasks.get(query.task, ()) if query.by is By.SUBMISSION else ()
    return BoardPage(
        headline=_headline(board, page, device) if device and page.number == 1 else None,
        elsewhere=elsewhere(query, reader) if query.by is By.SUBMISSION else (),
        board=board,
        query=query,
        by=query.by.value,
        columns=TABLES[query.by],
        page=page,
        problems=len(board.problems),
        tasks=len({problem.task for problem in board.problems}),
        final=sum(leader.entry.is_final for leader in board.leaders),
        provisional=sum(not leader.entry.is_final for leader in board.leaders),
        contaminated={task.slug: task.contaminated for task in board.contaminated},
        with_contaminated=query.address(contaminated=True),
        without_contaminated=query.address(contaminated=False),
        device=device,
        devices=Device.objects.all(),
        choices=choices,
        directions=[(each, query.address(direction=each)) for each in directions],
        tabs=[(tab.value, label, _tab(query, tab)) for tab, label in _TABS.items()],
        sorts=[(sort.value, _SORTS[sort]) for sort in query.by.sorts],
        sort_words=_SORTS[query.sort],
        export=query.address(),
        folded=_folded(query) - bool(query.direction and directions),
        has_costs=any(ranked.row.tokens is not None for ranked in board.groups),
        has_scores=_has_scores(page.object_list),
        error=error,
        fragment=fragment,
        **_charts(board, list(page.object_list)),
    )


def _folded(query: Query) -> int:
    """How many of the filters that are folded away are set."""
    usual = {"who": "", "over": Over.COMMON, "p": 1.0, "sort": default_sort(query.by, "")}
    changed = [getattr(query, name) != value for name, value in usual.items()]
    return sum(bool(getattr(query, name)) for name in _FOLDED) + sum(
        changed if query.by.is_grouped else ()
    )


def _charts(board: Board, shown: Sequence[Any]) -> dict[str, Any]:
    if board.query.by is By.LEADERS:
        rated = [leader.entry.rated for leader in shown if leader.entry.rated]
        return {
            "axis": drawings.axis(each.value for each in rated),
            "progress": progress_figure(leader.days for leader in board.leaders if leader.days),
        }
    if board.query.by is By.SUBMISSION:
        fell = [(problem, days) for problem, days in board.days.items() if len(days) > 1]
        records = [(problem, climbs(days), in_words(days)) for problem, days in fell]
        return {"records": records, "likeness": _likeness(board.query.task, shown)}
    leading = [ranked.row for ranked in board.groups]
    return {
        "figure": fast_p_figure(leading, board.query.p) if leading else None,
        "cost": cost_figure(leading),
        "curve": [
            (group.owner, [share and share.value for share in map(group.fast_at, THRESHOLDS)])
            for group in leading[:PAGE_ROWS]
        ],
    }


def _has_scores(rows: Iterable[object]) -> bool:
    """Whether any of the shown rows has a score; without, they have speedups on listed sizes."""
    shown = (getattr(each, "entry", None) or getattr(each, "row", None) for each in rows)
    return any(getattr(each, "score", None) is not None for each in shown)


def _likeness(slug: str, rows: Sequence[Ranked[Entry]]) -> dict[str, str]:
    """What the shown sources of one task's board are like."""
    task = find_task(slug) if slug else None
    if task is None or task.current_version is None:
        return {}
    return likenesses(task.current_version, [each.row.submission_id for each in rows])


def _headline(board: Board, page: Page[Any], device: Device) -> Headline | None:
    """What a board's first page opens with, where it is ordered as such boards are."""
    query, rows = board.query, list(page.object_list)
    if query.by is By.SUBMISSION:
        is_one_board = query.task and query.sort is Sort.SCORE
        return leading(rows) if is_one_board and rows else None
    return headline(board, device) if query.sort is default_sort(query.by, "") else None


def _tab(query: Query, by: By) -> str:
    """The same selection on another board; only boards of entries keep a single name."""
    names = {} if by in (By.SUBMISSION, By.LEADERS) else {"agent": "", "model": ""}
    return query.address(by=by, sort=default_sort(by, query.task), **names)
