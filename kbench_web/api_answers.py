"""What each answer of the API has: the site's version; and HEAD, which is GET without its body."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from kbench_web.client import wheel


class ApiAnswerMiddleware:
    """Says of which version the site is, and lets the API's router know GET alone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        """Wrap the next handler."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer HEAD as GET, say how long the content is, and drop it."""
        if not request.path_info.startswith("/api/v1/"):
            return self.get_response(request)
        is_head = request.method == "HEAD"
        if is_head:
            request.method = "GET"
        response = self.get_response(request)
        response["Kbench-Version"] = wheel.version()
        if is_head:
            response["Content-Length"] = str(len(response.content))
            response.content = b""
        return response
