"""The leaderboard's page."""

from __future__ import annotations

from dataclasses import fields
from functools import partial

from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import board as board_of
from leaderboard_app.boards.citing import citation
from leaderboard_app.boards.page import board_page
from leaderboard_app.boards.query import By, Query, QueryError, parse_query
from runs_app.core.plotly_policy import PLOTLY_STYLES
from tasks_app.parameters import takes

_PARAMETERS = tuple(field.name for field in fields(Query))


@require_safe
@takes(*_PARAMETERS)
def cite(request: HttpRequest) -> HttpResponse:
    """How to cite the board that the address asks for; the board says what is wrong with it."""
    tasks = selectors.board_tasks()
    default = partial(selectors.default_device, reader=request.user)
    try:
        query = parse_query(request.GET, selectors.choices(tasks), default)
    except QueryError:
        return redirect(f"{reverse('leaderboard')}?{request.GET.urlencode()}")
    host = request.build_absolute_uri("/").rstrip("/")
    cited = citation(query, tasks, host, timezone.now().date())
    return render(request, "leaderboard_app/boards/cite.html", {"cited": cited})


@require_safe
@vary_on_headers("HX-Request")
@csp_update({"style-src": PLOTLY_STYLES})
@takes(*_PARAMETERS, "page")
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The board that the address asks for; what means nothing is said, and filters left out."""
    tasks = selectors.board_tasks()
    choices = selectors.choices(tasks)
    error: QueryError | None = None
    default = partial(selectors.default_device, reader=request.user)
    try:
        query = parse_query(request.GET, choices, default)
    except QueryError as caught:
        error, query = caught, Query(by=By.LEADERS, device=default())
    fragment = request.headers.get("HX-Request") == "true"
    board = board_of(query, tasks)
    number, user = request.GET.get("page"), request.user
    page = board_page(board, choices, number, reader=user, error=error, fragment=fragment)
    name = "parts/board.html" if fragment else "leaderboard.html"
    return render(
        request, f"leaderboard_app/boards/{name}", vars(page), status=400 if error else 200
    )
