"""The leaderboard's page."""

from __future__ import annotations

from typing import Any

from csp.decorators import csp_update
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from leaderboard_app.boards import selectors
from leaderboard_app.boards.charts import fast_p_figure
from leaderboard_app.boards.query import By, Choices, Query, QueryError, parse_query
from leaderboard_app.boards.ranking import THRESHOLDS, Sort, fast_p
from runs_app.models import Device
from runs_app.plotly_policy import PLOTLY_STYLES

PAGE_ROWS = 100
_TABS = ((By.SUBMISSION, "Submissions"), (By.AGENT, "Agents"), (By.MODEL, "Language models"))
_SORTS = {
    Sort.SPEEDUP: "speedup",
    Sort.FAST: "fast_p",
    Sort.LATENCY: "time",
    Sort.CORRECT: "correct",
    Sort.SCORE: "P score",
    Sort.FLOOR: "share of the limit",
}


@require_safe
@vary_on_headers("HX-Request")
@csp_update({"style-src": PLOTLY_STYLES})
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The board that the address asks for; a filter that means nothing is said and left out."""
    tasks = selectors.board_tasks()
    choices = selectors.choices(tasks)
    error: QueryError | None = None
    try:
        query = parse_query(request.GET, choices, selectors.default_device)
    except QueryError as caught:
        error, query = caught, Query(device=selectors.default_device())
    board = selectors.board(query, tasks)
    fragment = request.headers.get("HX-Request") == "true"
    context = _context(request, board, choices) | {"error": error, "fragment": fragment}
    name = "parts/board.html" if fragment else "leaderboard.html"
    return render(request, f"leaderboard_app/boards/{name}", context, status=400 if error else 200)


def _context(request: HttpRequest, board: selectors.Board, choices: Choices) -> dict[str, Any]:
    query = board.query
    device = Device.objects.filter(slug=query.device).first()
    rows = board.entries or board.groups
    page = Paginator(rows, PAGE_ROWS).get_page(request.GET.get("page"))
    leading = [ranked.row for ranked in board.groups]
    return {
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
        "tabs": [(tab.value, label, query.address(by=tab)) for tab, label in _TABS],
        "sorts": [(sort.value, _SORTS[sort]) for sort in query.by.sorts],
        "sort_words": _SORTS[query.sort],
        "export": query.address(),
        "figure": fast_p_figure(leading) if leading else None,
        "curve": [
            (group.owner, [fast_p(group.speedups, group.problems, p).value for p in THRESHOLDS])
            for group in leading[:PAGE_ROWS]
        ],
    }
