"""What holds of every operation of the API, and so is written once: in code and in its document."""

from __future__ import annotations

import functools
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import NinjaAPI
from ninja.operation import Operation

IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A key of your choice. If you send the same key and body again within 24 hours, "
    "the site doesn't act on them again, and you get the first response.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^[!-~]+$"},
}
_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_UNCHANGED = {"description": "Nothing has changed: If-None-Match matches the current ETag."}
_ALWAYS = (
    HTTPStatus.BAD_REQUEST,  # what cannot be read
    HTTPStatus.UNAUTHORIZED,  # a token that is shown must be valid
    HTTPStatus.FORBIDDEN,  # and have the scope that this needs
    HTTPStatus.UNPROCESSABLE_ENTITY,  # a parameter that is not known
    HTTPStatus.TOO_MANY_REQUESTS,
)


class UnknownParameter(Exception):
    """The address has parameters that the operation doesn't accept."""

    def __init__(self, names: list[str], known: list[str]) -> None:
        super().__init__(*names)
        self.names, self.known = names, known

    @property
    def reason(self) -> str:
        """What is wrong, and what would be valid."""
        known = (
            f"known: {', '.join(self.known)}"
            if self.known
            else "this address accepts no parameters"
        )
        return f"is not a parameter of this address; {known}"


class Api(NinjaAPI):
    """Refuses unknown parameters, and documents every response of each operation."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._documents: dict[str, Any] = {}
        self.add_decorator(_knows_its_parameters, mode="view")

    def get_openapi_schema(self, **options: Any) -> Any:
        """Ninja's document, with the responses that operations needn't list; made once."""
        known = self._documents.get(repr(options))
        if known is not None:
            return known
        document = self._documents[repr(options)] = super().get_openapi_schema(**options)
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                _complete(operation, path, method)
        return document


def _complete(operation: dict[str, Any], path: str, method: str) -> None:
    statuses = set(_ALWAYS)
    if method == "post":  # an admin has stopped submissions or runs
        statuses.add(HTTPStatus.SERVICE_UNAVAILABLE)
    if "{" in path:
        statuses.add(HTTPStatus.NOT_FOUND)
    if body := operation.get("requestBody"):
        statuses.add(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        _name_the_schema(body["content"]["application/json"])
    for status in sorted(statuses):
        content = {"application/json": {"schema": _PROBLEM}}
        answer = {"description": status.phrase, "content": content}
        operation["responses"].setdefault(status.value, answer)
    if method == "post":
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    if status_created := operation["responses"].get(HTTPStatus.CREATED.value):
        status_created["headers"] = {"Location": {"schema": {"type": "string"}}}
    if method == "get":
        operation["responses"].setdefault(HTTPStatus.NOT_MODIFIED.value, _UNCHANGED)
        # public reading needs no token
        operation["security"] = [{}, *operation["security"]]


def _name_the_schema(media: dict[str, Any]) -> None:
    """Leave the default of a whole body out of the document: its fields have theirs."""
    if "allOf" in media["schema"]:
        [media["schema"]] = media["schema"]["allOf"]


def _knows_its_parameters(
    run: Callable[..., HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """Refuse a request whose address has a parameter that the operation does not know."""
    operation: Operation = run.__self__  # type: ignore[attr-defined]  # a bound method
    known = [
        name
        for model in operation.models
        if model.__ninja_param_source__ == "query"
        for name in getattr(model, "__ninja_flatten_map__", ())
    ]

    @functools.wraps(run)
    def checked(request: HttpRequest, **values: Any) -> HttpResponseBase:
        if unknown := [name[:100] for name in request.GET if name not in known]:
            return operation.api.on_exception(request, UnknownParameter(unknown, known))
        return run(request, **values)

    return checked
