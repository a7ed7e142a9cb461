"""The API's root: authentication, the form of errors, and the apps' routers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from ninja.errors import HttpError, ValidationError
from ninja.openapi.docs import Swagger

from kbench_web.api_access import BearerAuth, OutOfReach, Unauthorized
from kbench_web.api_contract import Api, UnknownParameter
from kbench_web.client.api import router as site_router
from kbench_web.idempotency import once
from leaderboard_app.boards.api import router as leaderboard_router
from runs_app.core import features
from runs_app.core.errors import NotAllowed, QuotaExceeded, Stopped, SubmissionError, WrongState
from runs_app.core.queue.api import router as queue_router
from runs_app.optimiser.api import router as runs_router
from runs_app.submitting.status_api import router as submissions_router
from tasks_app.pages.api import router as tasks_router

Pairs = Sequence[tuple[str, str]]
"""Fields, and what is wrong with each."""

api = Api(
    title="kbench",
    version="1",
    description="Submit kernels, follow their evaluation and read the leaderboard.",
    urls_namespace="api",
    auth=BearerAuth(),
    docs=Swagger({"validatorUrl": None}),  # it would ask another site
)
api.add_decorator(once, mode="view")
for _router in (
    *(site_router, tasks_router, submissions_router, queue_router, runs_router),
    *(module.router for module in features.modules("api")),
    leaderboard_router,
):
    api.add_router("", _router)


def _error(
    request: HttpRequest, field: str, reason: str, status: int, also: Pairs = (), limit: str = ""
) -> HttpResponse:
    document: dict[str, object] = {"field": field, "reason": reason}
    if also:
        document["also"] = [{"field": each, "reason": why} for each, why in also[:_MOST_ALSO]]
    if limit:
        document["limit"] = limit
    return api.create_response(request, document, status=status)


@api.exception_handler(Unauthorized)
def _unauthorized(request: HttpRequest, error: Unauthorized) -> HttpResponse:
    response = _error(request, "Authorization", str(error), 401)
    response["WWW-Authenticate"] = "Bearer"
    return response


@api.exception_handler(OutOfReach)
def _out_of_reach(request: HttpRequest, error: OutOfReach) -> HttpResponse:
    return _error(request, "Authorization", str(error), 403)


@api.exception_handler(UnknownParameter)
def _unknown_parameter(request: HttpRequest, error: UnknownParameter) -> HttpResponse:
    name, *others = error.names
    return _error(request, name, error.reason, 422, [(each, error.reason) for each in others])


@api.exception_handler(SubmissionError)
def _submission_error(request: HttpRequest, error: SubmissionError) -> HttpResponse:
    known = {QuotaExceeded: 429, WrongState: 409, NotAllowed: 403, Stopped: 503}
    status = next((known[kind] for kind in known if isinstance(error, kind)), 422)
    (field, reason), *also = [
        ("model" if field == "language_model" else field, reason) for field, reason in error.every
    ]
    response = _error(request, field, reason, status, also, getattr(error, "limit", ""))
    if retry_s := getattr(error, "retry_s", None):
        response["Retry-After"] = str(retry_s)
    return response


_MOST_ALSO = 50  # chosen: as many as a document's faults are told at once
_MEANT = {
    "wall_s": "`wall_time_s`",
    "wall_time": "`wall_time_s`, in seconds",
    "minutes": "`wall_time_s`, in seconds",
    "hours": "`wall_time_s`, in seconds",
    "seconds": "`wall_time_s`",
    "time": "`wall_time_s`, in seconds",
    "dollars": "`usd`",
    "cost": "`usd`",
    "calls": "`tokens`, or `usd`",
    "model": "`models`, a list of names",
    "temperature": "`temperatures`, a list of numbers",
    "generations": '`parameters`, such as {"generations": 5}',
    "budget": 'the caps themselves, such as {"usd": 2}',
    "kernel": "`source`",
    "code": "`source`",
}
"""Names that people try in bodies of the API, and what they want."""
_REASONS = {
    "missing": "is missing",
    "bool_type": "must be true or false",
    "string_type": "must be a string",
    "list_type": "must be a list",
    "dict_type": "must be a JSON object",
    "model_attributes_type": "must be a JSON object",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items: split them over several requests",
    "uuid_parsing": "must be a full id, such as 0b7c1f5e-5a0e-4c2f-9a35-2f0c7f2f8a11",
}
"""What is wrong with a value, by pydantic's name for it."""


@api.exception_handler(ValidationError)
def _validation_error(request: HttpRequest, error: ValidationError) -> HttpResponse:
    found = sorted(error.errors, key=lambda each: each["type"] != "extra_forbidden")
    (field, reason), *also = dict.fromkeys(map(_wrong, found))
    return _error(request, field, reason, 422, also)


def _wrong(error: Mapping[str, Any]) -> tuple[str, str]:
    """The field of an error, and what is wrong with it."""
    path = [part for part in error["loc"] if part not in ("body", "query", "path", "payload")]
    if error["loc"][0] == "query":  # whose parameters are flat
        path = [part for part in path if isinstance(part, str)][-1:]
    field = ".".join(map(str, path))
    reason = error["msg"][:1].lower() + error["msg"][1:]
    if error["type"] in _REASONS:
        reason = _REASONS[error["type"]].format(**error.get("ctx", {}))
    if error["type"] == "extra_forbidden" and field:
        meant = _MEANT.get(field.rpartition(".")[2])
        reason = "there is no such field" + (f": use {meant}" if meant else "")
    return field or "body", reason


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return _error(request, "", str(error) or "there is nothing at this address", 404)


@api.exception_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE >> 20
    return _error(request, "body", f"the request is larger than {most} MiB", 413)


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, RequestDataTooBig):
        return _too_big(request, error.__cause__)
    if error.status_code == 401:
        return _unauthorized(request, Unauthorized(str(error)))
    if error.status_code == 400:
        cause = f": {error.__cause__}" if error.__cause__ else ""
        return _error(request, "body", f"is not valid JSON{cause}", 400)
    return _error(request, "", str(error), error.status_code)
