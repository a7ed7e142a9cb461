"""Refuses addresses and forms: a parameter that no page knows, a character that no row can hold."""

from __future__ import annotations

from collections.abc import Callable, Collection

from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
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


_NUL = "\0"
_LONG_TEXTS = ("source", "text")
"""Fields whose forms say themselves what is wrong, beside all that was written."""


class UnstorableTextMiddleware:
    """Answers 400 to NUL in an address or in a form; PostgreSQL would answer with an error.

    Bodies of the API are left to those who read them: their fields say no.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Forget cookies that no browser was given, so that no session is looked up by them."""
        for name in [name for name, value in request.COOKIES.items() if _NUL in value]:
            del request.COOKIES[name]
        try:
            request.GET  # noqa: B018 - reads the address
        except TooManyFieldsSent:
            request.GET = QueryDict()  # the page that says so reads it, too
            raise
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, arguments: object, values: object
    ) -> HttpResponse | None:
        """Look at the address, then at the form; every limit on requests was asked before."""
        field = _field_with_nul(request.GET)
        if field is None and _NUL in request.path_info:
            field = "address"
        if field is None and request.method == "POST" and not _is_api(request):
            field = _field_with_nul(request.POST, besides=_LONG_TEXTS)
        return None if field is None else _refusal(request, field)


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")


def _field_with_nul(values: QueryDict, besides: Collection[str] = ()) -> str | None:
    """The first other field with a NUL in its name or in one of its values."""
    for name, found in values.lists():
        if name in besides:
            continue
        if _NUL in name or any(_NUL in str(value) for value in found):
            return name.replace(_NUL, "\ufffd")
    return None


def _refusal(request: HttpRequest, field: str) -> HttpResponse:
    if _is_api(request):
        reason = "contains a NUL character, which kbench can't store: remove it"
        return JsonResponse({"field": field, "reason": reason}, status=400)
    return render(request, "400.html", {"field": field}, status=400)
