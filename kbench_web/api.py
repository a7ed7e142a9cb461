"""The API's root: authentication, the form of errors, and the apps' routers."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.security.base import AuthBase

from kbench_web.accounts.tokens import find_token
from kbench_web.models import ApiToken
from leaderboard_app.boards.api import router as leaderboard_router
from runs_app.api import router as runs_router
from runs_app.errors import NotAllowed, QuotaExceeded, SubmissionError, WrongState
from tasks_app.pages.api import router as tasks_router

_SCHEME = "bearer"
_READING = ("GET", "HEAD", "OPTIONS")


class Unauthorized(Exception):
    """No token, or one that does not allow this; says why."""


class BearerAuth(AuthBase):
    """A token for everything that changes something; reading what is public needs none."""

    openapi_type = "http"
    openapi_scheme = _SCHEME

    def __call__(self, request: HttpRequest) -> Any:
        """Put the token's user on the request; raises `Unauthorized`.

        A token that is shown must be valid, even where none is needed. Session cookies do not
        count: a page of another site could make a browser send them.
        """
        header = request.headers.get("Authorization", "").strip()
        reading = request.method in _READING
        request.user = AnonymousUser()
        if not header and reading:
            return request.user
        token = _token(header)
        scope = ApiToken.Scope.READ if reading else ApiToken.Scope.SUBMIT
        refusal = token.refusal(scope.value, timezone.now())
        if refusal:
            raise Unauthorized(refusal)
        request.user = token.user
        return token


def _token(header: str) -> ApiToken:
    if not header:
        raise Unauthorized(
            "send the header 'Authorization: Bearer TOKEN'; make a token on the page /account/,"
            " or on the site's machine: .venv/bin/python manage.py create_token USER"
        )
    scheme, _, text = header.partition(" ")
    if scheme.lower() != _SCHEME or not text.strip():
        raise Unauthorized("the Authorization header must read: Bearer TOKEN")
    token = find_token(text.strip(), timezone.now())
    if token is None:
        raise Unauthorized("this token is not known here")
    return token


api = NinjaAPI(
    title="kbench",
    version="1",
    description="Submit kernels, follow their evaluation, read the leaderboard.",
    urls_namespace="api",
    auth=BearerAuth(),
)
api.add_router("", tasks_router)
api.add_router("", runs_router)
api.add_router("", leaderboard_router)


def _error(request: HttpRequest, field: str, reason: str, status: int) -> HttpResponse:
    return api.create_response(request, {"field": field, "reason": reason}, status=status)


@api.exception_handler(Unauthorized)
def _unauthorized(request: HttpRequest, error: Unauthorized) -> HttpResponse:
    response = _error(request, "Authorization", str(error), 401)
    response["WWW-Authenticate"] = "Bearer"
    return response


@api.exception_handler(SubmissionError)
def _submission_error(request: HttpRequest, error: SubmissionError) -> HttpResponse:
    status = 422
    if isinstance(error, QuotaExceeded):
        status = 429
    elif isinstance(error, WrongState):
        status = 409
    elif isinstance(error, NotAllowed):
        status = 403
    field = {"language_model": "model"}.get(error.field, error.field)
    return _error(request, field, error.reason, status)


@api.exception_handler(ValidationError)
def _validation_error(request: HttpRequest, error: ValidationError) -> HttpResponse:
    first = error.errors[0]
    path = [str(part) for part in first["loc"] if part not in ("body", "query", "path", "payload")]
    return _error(request, ".".join(path) or "body", first["msg"].lower(), 422)


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return _error(request, "", str(error) or "there is no such thing", 404)


@api.exception_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return _error(request, "body", "the request is larger than 4 MiB", 413)


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, RequestDataTooBig):
        return _too_big(request, error.__cause__)
    if error.status_code == 400:
        cause = f": {error.__cause__}" if error.__cause__ else ""
        return _error(request, "body", f"is not valid JSON{cause}", 400)
    return _error(request, "", str(error), error.status_code)
