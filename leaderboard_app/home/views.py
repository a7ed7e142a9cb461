"""The first page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from leaderboard_app.boards.records import leading
from leaderboard_app.home.page import HomePage, boards, live


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What this is, what happens now, who leads on each device, and how to begin."""
    keys = leading()
    now = live(request.user, timezone.now(), keys)
    if request.headers.get("HX-Request") == "true":
        return render(request, "leaderboard_app/home/parts/live.html", {"live": now})
    board, others = boards(keys, request.user)
    host = request.build_absolute_uri("/").rstrip("/")
    page = HomePage(live=now, board=board, others=others, host=host)
    return render(request, "leaderboard_app/home/home.html", vars(page))
