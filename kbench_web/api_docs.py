"""The page that shows the API by example."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kbench_web.client.page import ApiPage
from kbench_web.client.views import address


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    """The API by example."""
    page = ApiPage(
        host=request.build_absolute_uri("/").rstrip("/"),
        wheel=request.build_absolute_uri(address()),
        per_minute=settings.API_REQUESTS_PER_MINUTE,
        per_day=settings.MAX_SUBMISSIONS_PER_DAY,
    )
    return render(request, "kbench_web/api_docs.html", vars(page))
