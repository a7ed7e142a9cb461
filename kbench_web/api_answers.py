"""What all answers of the API have: one form of errors, the site's version, an ETag, and HEAD."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import get_conditional_response, set_response_etag

from kbench_web.client import wheel

_REASONS = {
    HTTPStatus.BAD_REQUEST: (
        "this request can't be read: its host, length or number of parameters isn't valid; see"
        " /api/v1/docs"
    ),
    HTTPStatus.NOT_FOUND: "there is no such address; see /api/v1/docs",
    HTTPStatus.METHOD_NOT_ALLOWED: "this address doesn't accept {method}; see /api/v1/docs",
}


class ApiErrorMiddleware:
    """Answers in JSON wherever Django or the router would send a page or plain text."""

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


class ApiAnswerMiddleware:
    """Says which version the site runs, and shows the API's router HEAD as GET."""

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
