"""Refuses addresses with a parameter that the page does not know."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

_OURS = ("tasks_app.", "runs_app.", "leaderboard_app.", "kbench_web.")
_OF_ALLAUTH = "kbench_web.accounts."
"""Its pages hand on parameters of the library."""


class KnownParametersMiddleware:
    """Answers 400 where a page would leave a parameter aside.

    A filter that is spelt wrong would else show everything, as if it had been meant. Views name
    what they know by `tasks_app.parameters.takes`. The API has a check of its own.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Only the view that was found says what is known."""
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, arguments: object, values: object
    ) -> HttpResponse | None:
        """Refuse the first parameter that the view does not name."""
        module = getattr(view, "__module__", "")
        if request.method not in ("GET", "HEAD") or not module.startswith(_OURS):
            return None
        known = getattr(view, "parameters", ())
        unknown = next((name for name in request.GET if name not in known), None)
        if unknown is None or module.startswith(_OF_ALLAUTH):
            return None
        context = {"unknown": unknown, "known": known}
        return render(request, "unknown_parameter.html", context, status=400)
