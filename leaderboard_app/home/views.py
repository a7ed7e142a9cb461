"""The first page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from leaderboard_app.boards.recent import leaders
from runs_app.optimisation.page import run_rows
from runs_app.optimisation.selectors.runs import running_runs
from runs_app.queue.selectors import queue_overview
from runs_app.work.access import listed_evaluations
from tasks_app.selectors import published_tasks

_RECENT = 8
_RUNS = 4


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What this is, who leads on each device, what ran last, and how to begin."""
    evaluations = listed_evaluations(request.user)
    finished = evaluations.filter(finished_at__isnull=False).order_by("-finished_at")
    under_way = evaluations.filter(finished_at__isnull=True)
    context = {
        "boards": leaders(),
        "recent": finished[:_RECENT],
        "active": under_way.order_by("background", "-status", "created_at")[:_RECENT],
        "queues": queue_overview(request.user, timezone.now()),
        "runs": run_rows(running_runs(request.user, _RUNS)),
        "tasks": published_tasks().count(),
        "host": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "leaderboard_app/home/home.html", context)
