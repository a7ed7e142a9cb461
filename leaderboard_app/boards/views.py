"""The leaderboard's page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from csp.decorators import csp_update
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import Board
from leaderboard_app.boards.board import board as board_of
from leaderboard_app.boards.charts import cost_figure, fast_p_figure, progress_figure
from leaderboard_app.boards.history import in_words, speeds
from leaderboard_app.boards.matrix import SHADES
from leaderboard_app.boards.query import (
    By,
    Choices,
    Query,
    QueryError,
    default_sort,
    parse_query,
)
from leaderboard_app.boards.ranking import THRESHOLDS, Sort, fast_p
from runs_app.models import Device
from runs_app.plotly_policy import PLOTLY_STYLES
from tasks_app import drawings
from tasks_app.parameters import takes

PAGE_ROWS = 100
_TABS = (
    (By.LEADERS, "Leaders"),
    (By.MATRIX, "Matrix"),
    (By.SUBMISSION, "Submissions"),
    (By.AGENT, "Agents"),
    (By.MODEL, "Language models"),
)
_SORTS = {
    Sort.SPEEDUP: "speedup",
    Sort.FAST: "fast_p",
    Sort.LATENCY: "time",
    Sort.CORRECT: "correct",
    Sort.SCORE: "P score",
    Sort.FLOOR: "share of the limit",
    Sort.NEWEST: "newest record",
    Sort.TASK: "task",
}


@require_safe
@vary_on_headers("HX-Request")
@csp_update({"style-src": PLOTLY_STYLES})
@takes(*(field.name for field in fields(Query)), "page")
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The board that the address asks for; what means nothing is said, and filters left out."""
    tasks = selectors.board_tasks()
    choices = selectors.choices(tasks)
    error: QueryError | None = None
    try:
        query = parse_query(request.GET, choices, selectors.default_device)
    except QueryError as caught:
        error, query = caught, Query(by=By.LEADERS, device=selectors.default_device())
    board = board_of(query, tasks)
    fragment = request.headers.get("HX-Request") == "true"
    context = _context(request, board, choices) | {"error": error, "fragment": fragment}
    name = "parts/board.html" if fragment else "leaderboard.html"
    return render(request, f"leaderboard_app/boards/{name}", context, status=400 if error else 200)


def _context(request: HttpRequest, board: Board, choices: Choices) -> dict[str, Any]:
    query = board.query
    device = Device.objects.filter(slug=query.device).first()
    page = Paginator(_rows(board), PAGE_ROWS).get_page(request.GET.get("page"))
    return {
        "board": board,
        "query": query,
        "by": query.by.value,
        "page": page,
        "problems": len(board.problems),
        "contaminated": {task.slug: task.contaminated for task in board.contaminated},
        "with_contaminated": query.address(contaminated=True),
        "without_contaminated": query.address(contaminated=False),
        "device": device,
        "imports": selectors.imports_of(device),
        "devices": Device.objects.all(),
        "choices": choices,
        "thresholds": THRESHOLDS,
        "tabs": [(tab.value, label, _tab(query, tab)) for tab, label in _TABS],
        "sorts": [(sort.value, _SORTS[sort]) for sort in query.by.sorts],
        "sort_words": _SORTS[query.sort],
        "export": query.address(),
        "folded": sum(bool(value) for value in _folded(query)),
    } | _charts(board, list(page.object_list))


def _rows(board: Board) -> Sequence[Any]:
    """What the page turns over: leaders, entries, a matrix's rows, or groups with their section."""
    if board.query.by is By.LEADERS:
        return board.leaders
    if board.query.by is By.MATRIX:
        return board.matrix.rows
    if board.query.by is By.SUBMISSION:
        return board.entries
    return [(section, ranked) for section in board.sections for ranked in section.groups]


def _charts(board: Board, shown: Sequence[Any]) -> dict[str, Any]:
    if board.query.by is By.LEADERS:
        speedups = [leader.entry.speedup for leader in shown if leader.entry.speedup]
        return {
            "axis": drawings.axis(speedup.value for speedup in speedups),
            "progress": progress_figure(leader.days for leader in board.leaders if leader.days),
        }
    if board.query.by is By.SUBMISSION:
        fell = [(problem, days) for problem, days in board.days.items() if len(days) > 1]
        return {"records": [(problem, speeds(days), in_words(days)) for problem, days in fell]}
    if board.query.by is By.MATRIX:
        return {"shades": SHADES}
    if not board.query.by.is_grouped:
        return {}
    leading = [ranked.row for ranked in board.groups]
    return {
        "figure": fast_p_figure(leading, board.query.p) if leading else None,
        "cost": cost_figure(leading),
        "has_costs": any(group.tokens is not None for group in leading),
        "curve": [
            (group.owner, [fast_p(group.speedups, group.problems, p).value for p in THRESHOLDS])
            for group in leading[:PAGE_ROWS]
        ],
    }


def _tab(query: Query, by: By) -> str:
    """The same selection as another board; a single name is the selection of entries alone."""
    names = {} if by in (By.SUBMISSION, By.LEADERS) else {"agent": "", "model": ""}
    return query.address(by=by, sort=default_sort(by, query.task), **names)


def _folded(query: Query) -> tuple[object, ...]:
    """Filters that lie below the row: those that are set are counted beside the fold."""
    return (
        query.scenario, query.dtype, query.direction, query.agent, query.model, query.since,
        query.until, query.verified, query.contaminated,
    )  # fmt: skip
