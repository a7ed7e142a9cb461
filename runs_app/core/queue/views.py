"""The page that says what waits on each device, and why."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from runs_app.core.queue.selectors import queue_overview

_SHOWN = 40
"""What waits on each device is shown so far; the page says how many there are in all."""


@never_cache
@require_safe
def queue(request: HttpRequest) -> HttpResponse:
    """Every device with its runners, what runs, and why the rest waits."""
    fragment = request.headers.get("HX-Request") == "true"
    name = "parts/queues.html" if fragment else "queue.html"
    overview = queue_overview(request.user, timezone.now(), _SHOWN)
    return render(request, f"runs_app/queue/{name}", {"queues": overview})
