"""Requests of a runner, straight to the site's ASGI application."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from asgiref.testing import ApplicationCommunicator

from gpu_runner.data import codec
from kbench_web.asgi import application
from runs_app.models import Runner
from tests import factories as make

TEXT = "kbr_of-this-test"
"""The token of `lab_runner`."""


@dataclass
class Answer:
    """Status, headers and document."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    document: Any = None


def begin(
    address: str, body: bytes | None, token: str | None = TEXT, **scope: Any
) -> ApplicationCommunicator:
    """A request whose headers have come, and the body, if there is one."""
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    headers += [(b"authorization", f"Bearer {token}".encode())] if token is not None else []
    known = {
        "type": "http",
        "method": "POST",
        "path": f"/runner/v1/{address}",
        "raw_path": b"",
        "query_string": b"",
        "headers": [*headers, *scope.pop("headers", [])],
        "client": ["9.9.9.9", 1],
        "server": ["127.0.0.1", 80],
        "scheme": "http",
        "http_version": "1.1",
    }
    asked = ApplicationCommunicator(application, known | scope)
    if body is not None:
        asked.input_queue.put_nowait({"type": "http.request", "body": body, "more_body": False})
    return asked


async def answer_of(asked: ApplicationCommunicator, timeout_s: float = 60) -> Answer:
    start = await asked.receive_output(timeout_s)
    body = await asked.receive_output(timeout_s)
    await asked.wait(timeout_s)
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert int(headers["content-length"]) == len(body["body"])
    assert headers["cache-control"] == "no-store"
    text = body["body"]
    return Answer(start["status"], headers, json.loads(text) if text else None)


async def post(path: str, document: Any, token: str | None = TEXT, **scope: Any) -> Answer:
    """The answer to a whole request."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return await answer_of(begin(path, body, token, **scope))


def ask_of(runner: Runner, **changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = codec.encode(make.make_ask(runner, **changes))
    return document
