"""The first page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from leaderboard_app.home.page import device_leaders, live
from tasks_app.selectors import published_tasks


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What this is, what happens now, who leads on each device, and how to begin."""
    context: dict[str, Any] = {"live": live(request.user, timezone.now())}
    if request.headers.get("HX-Request") == "true":
        return render(request, "leaderboard_app/home/parts/live.html", context)
    context |= {
        "boards": device_leaders(),
        "tasks": published_tasks().count(),
        "host": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "leaderboard_app/home/home.html", context)
