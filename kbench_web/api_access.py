"""Who asks the API, and how often: tokens are recognised once, and counted by their owner."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from ninja.security.base import AuthBase

from kbench_web.accounts.tokens import find_token
from kbench_web.models import ApiToken
from kbench_web.proxies import client_address
from kbench_web.rate_limit import count, ends_in_s
from runs_app.core.hooks import Bearer, bearer_of
from tasks_app.people import Viewer

_SCHEME = "bearer"
_READING = ("GET", "HEAD", "OPTIONS")
_KNOWN = "_api_token"


class Unauthorized(Exception):
    """The token is missing or invalid; the message says why."""


class OutOfReach(Exception):
    """The token is valid but doesn't allow this; the message says what is missing."""


class BearerAuth(AuthBase):
    """Changing anything requires a token. You don't need one to read public data."""

    openapi_type = "http"
    openapi_scheme = _SCHEME

    def __call__(self, request: HttpRequest) -> object:
        """Put the token's user on the request; raises `Unauthorized` or `OutOfReach`.

        A token that is shown must be valid, even where none is needed. Session cookies do not
        count: a page of another site could make a browser send them.
        """
        reading = request.method in _READING
        request.user = AnonymousUser()
        if not _header(request) and reading:
            return request.user
        token = _token(request)
        if refusal := token.refusal(timezone.now()):
            raise Unauthorized(refusal)
        scope = (ApiToken.Scope.READ if reading else ApiToken.Scope.SUBMIT).value
        if scope not in token.scopes:
            has = ", ".join(token.scopes) or "none"
            raise OutOfReach(
                f"this token lacks the scope {scope!r}; it has: {has}. Create another at /account/"
            )
        request.user = _as_whom(request, token, reading=reading)
        return token


class ApiRateLimitMiddleware:
    """Returns 429 past the limit, and adds RateLimit-* headers to every API response."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Count the request, then pass it on or refuse it."""
        if not request.path_info.startswith("/api/"):
            return self.get_response(request)
        limit = settings.API_REQUESTS_PER_MINUTE
        reset_s = ends_in_s()
        remaining = limit - count(f"api {_client(request)}")
        if remaining >= 0:
            response = self.get_response(request)
        else:
            reason = f"more than {limit} requests in a minute; try again in {reset_s} s"
            document = {"field": "", "reason": reason, "limit": "requests_per_minute"}
            response = JsonResponse(document, status=429)
            response["Retry-After"] = str(reset_s)
        response["RateLimit-Limit"] = str(limit)
        response["RateLimit-Remaining"] = str(max(remaining, 0))
        response["RateLimit-Reset"] = str(reset_s)
        return response


def _client(request: HttpRequest) -> str:
    """Whose request it is: a token's owner, however it is spelt, or else an address.

    A header that is no valid token counts for the address, as if it were not there.
    """
    token = known_token(request)
    if token is not None and not token.refusal(timezone.now()):
        return f"user {token.user.pk}"
    return client_address(request) or ""


def _header(request: HttpRequest) -> str:
    return request.headers.get("Authorization", "").strip()


def _bearer(request: HttpRequest) -> str:
    """The token's text; empty where the header is something else."""
    scheme, _, text = _header(request).partition(" ")
    return text.strip() if scheme.lower() == _SCHEME else ""


def known_token(request: HttpRequest) -> ApiToken | Bearer | None:
    """The request's token, or whoever else the request comes from; looked up once per request."""
    if not hasattr(request, _KNOWN):
        text = _bearer(request)
        found = (find_token(text, timezone.now()) or bearer_of(text)) if text else None
        setattr(request, _KNOWN, found)
    known: ApiToken | Bearer | None = getattr(request, _KNOWN)
    return known


def _as_whom(request: HttpRequest, token: ApiToken | Bearer, *, reading: bool) -> Viewer:
    """Who asks; raises `OutOfReach` where a token does not reach."""
    if isinstance(token, ApiToken):
        return token.user
    viewer = token.viewer(request.path_info, reading=reading)
    if viewer is None:
        raise OutOfReach(token.reach)
    return viewer


def _token(request: HttpRequest) -> ApiToken | Bearer:
    if not _header(request):
        raise Unauthorized(
            "this needs the header 'Authorization: Bearer TOKEN'; create a token at /account/,"
            " or on the site's machine: .venv/bin/python manage.py create_token USER"
        )
    if not _bearer(request):
        raise Unauthorized("the Authorization header must read: Bearer TOKEN")
    token = known_token(request)
    if token is None:
        raise Unauthorized("this token isn't valid on this site; create a new one at /account/")
    return token
