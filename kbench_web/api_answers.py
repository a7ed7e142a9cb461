"""Adds the site's version and an ETag to the API's answers, and answers HEAD like GET."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, set_response_etag

from kbench_web.client import wheel


class ApiAnswerMiddleware:
    """Says of which version the site is, and lets the API's router know GET alone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer 304 to a client that has this answer, and HEAD like GET without content."""
        if not request.path_info.startswith("/api/v1/"):
            return self.get_response(request)
        is_head = request.method == "HEAD"
        if is_head:
            request.method = "GET"
        response = self.get_response(request)
        if request.method == "GET" and response.status_code == HTTPStatus.OK:
            response = _unless_known(request, response)
        response["Kbench-Version"] = wheel.version()
        if is_head:
            response["Content-Length"] = str(len(response.content))
            response.content = b""
        return response


def _unless_known(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The answer with its ETag, or 304 if the client's `If-None-Match` names that ETag."""
    etag = set_response_etag(response).get("ETag")  # an empty or streamed answer has none
    answer = get_conditional_response(request, etag=etag, response=response) or response
    if "Retry-After" in response:
        answer["Retry-After"] = response["Retry-After"]
    return answer
