"""The reference of the API as a page of the site, drawn from its OpenAPI document."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

Document = Mapping[str, Any]

_LONGEST_DEFAULT = 40
_MEDIA = {
    "application/json": "JSON",
    "text/csv": "CSV",
    "application/vnd.apache.parquet": "Parquet",
}


@dataclass(frozen=True, kw_only=True)
class Field:
    """A parameter, or a field of a body or an answer."""

    name: str
    kind: str
    required: bool
    default: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an operation may answer: its status, and the fields of it where it is no refusal."""

    status: int
    phrase: str
    media: str
    is_list: bool
    fields: tuple[Field, ...]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A method of an address."""

    anchor: str
    method: str
    path: str
    summary: str
    text: str
    needs_token: bool
    parameters: tuple[Field, ...]
    body: tuple[Field, ...]
    answers: tuple[Answer, ...]
    refusals: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """Operations about one kind of thing."""

    name: str
    operations: tuple[Operation, ...]


class Reference(DocsBase):
    """Ninja's page of documentation, in the site's own look and without a script."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        """Answer with the page."""
        context = {"chapters": chapters(api), "openapi_url": self.get_openapi_url(api, kwargs)}
        return render(request, "kbench_web/api_reference.html", context)


@functools.cache
def chapters(api: NinjaAPI) -> tuple[Chapter, ...]:
    """All operations by their tags, in the document's order."""
    document = api.get_openapi_schema()
    schemas = document["components"]["schemas"]
    found: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = operation.get("tags", ["other"])[0]
            found.setdefault(name, []).append(_operation(path, method, operation, schemas))
    return tuple(Chapter(name=name, operations=tuple(rows)) for name, rows in found.items())


def _operation(path: str, method: str, operation: Document, schemas: Document) -> Operation:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    answers = sorted(operation["responses"].items(), key=lambda pair: int(pair[0]))
    return Operation(
        anchor=re.sub(r"\W+", "-", f"{method} {path.removeprefix('/api/v1')}").strip("-"),
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        text=operation.get("description", ""),
        needs_token={} not in operation["security"],
        parameters=tuple(
            _field(each["name"], each["schema"], schemas, required=each["required"])
            for each in operation["parameters"]
        ),
        body=tuple(_fields(body.get("schema", {}), schemas)),
        answers=tuple(_answer(int(s), a, schemas) for s, a in answers if int(s) < 400),
        refusals=tuple(int(status) for status, _ in answers if int(status) >= 400),
    )


def _answer(status: int, answer: Document, schemas: Document) -> Answer:
    content = answer.get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    is_list = schema.get("type") == "array"
    return Answer(
        status=status,
        phrase=HTTPStatus(status).phrase,
        media=" or ".join(_MEDIA.get(name, name) for name in content),
        is_list=is_list,
        fields=tuple(_fields(schema["items"] if is_list else schema, schemas)),
    )


def _fields(schema: Document, schemas: Document) -> Iterator[Field]:
    whole = _resolved(schema, schemas)
    required = whole.get("required", ())
    for name, each in whole.get("properties", {}).items():
        yield _field(name, each, schemas, required=name in required)


def _field(name: str, schema: Document, schemas: Document, *, required: bool) -> Field:
    default = schema.get("default")
    shown = "" if default in (None, "") else json.dumps(default, ensure_ascii=False)
    return Field(
        name=name,
        kind=_kind(schema, schemas),
        required=required,
        default=shown if len(shown) <= _LONGEST_DEFAULT else "…",
        text=schema.get("description", ""),
    )


def _kind(schema: Document, schemas: Document) -> str:
    """A type in words, such as `list of text` or `cuda, cpp`."""
    if "$ref" in schema:
        return _named(schema, schemas)
    values = [str(value) for value in schema.get("enum", ()) if value != ""]
    if values:
        return ", ".join(values)
    if "anyOf" in schema:
        kinds = [_kind(each, schemas) for each in schema["anyOf"]]
        return " or ".join(kinds) + _limits(schema)
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}), schemas)}"
    words = {"string": "text", "object": "object", "integer": "whole number", "boolean": "flag"}
    kind = schema.get("format") or schema.get("type") or "anything"
    return words.get(kind, kind.replace("-", " ")) + _limits(schema)


def _named(schema: Document, schemas: Document) -> str:
    target = _resolved(schema, schemas)
    if "enum" in target:
        return ", ".join(target["enum"])
    names = ", ".join(target.get("properties", {}))
    return f"object: {names}"


def _limits(schema: Document) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return ""
    return f", at least {low:,}" if high is None else f", {low or 0:,} to {high:,}"


def _resolved(schema: Document, schemas: Document) -> Document:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Document = schemas[name] if name else schema
    return found
