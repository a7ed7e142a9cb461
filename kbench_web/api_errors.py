"""Gives every refusal under /api/ the one form of errors, whoever made it."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse

_REASONS = {
    HTTPStatus.BAD_REQUEST: (
        "this request can't be read: its host, its length or its number of parameters isn't what"
        " this site expects; see /api/v1/docs"
    ),
    HTTPStatus.NOT_FOUND: "there is no such address; see /api/v1/docs",
    HTTPStatus.METHOD_NOT_ALLOWED: "this address does not take {method}; see /api/v1/docs",
}


class ApiErrorMiddleware:
    """Answers in JSON where Django or the router would answer with a page or plain text."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on; replace a refusal that is not JSON and keep its headers."""
        response = self.get_response(request)
        if not request.path_info.startswith("/api/") or response.status_code not in _REASONS:
            return response
        if response.get("Content-Type", "").startswith("application/json"):
            return response
        reason = _REASONS[HTTPStatus(response.status_code)].format(method=request.method)
        document = {"field": "", "reason": reason}
        replaced = JsonResponse(document, status=response.status_code)
        if "Allow" in response:
            replaced["Allow"] = response["Allow"]
        return replaced
