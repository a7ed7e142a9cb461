"""The sockets as an AsyncAPI document: addresses, authentication, and the form of events."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from gpu_runner.data.verdict import Stage, Verdict
from runs_app.evolve.events import KINDS
from runs_app.messaging import broadcast
from runs_app.models import Status

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_ID: Schema = {"type": "string", "format": "uuid"}
_SEQ: Schema = {
    "type": "integer",
    "minimum": 0,
    "description": "Number of the event, for `?since=`; 0 where nothing can be sent again.",
}
_SINCE = "`?since=SEQ` sends what came after that event first."


def _object(properties: dict[str, Schema], *, optional: tuple[str, ...] = ()) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


EVALUATION = _object(
    {
        "seq": _SEQ,
        "kind": _one_of(*broadcast.STATUS_AFTER),
        "attempt": {"type": "integer", "minimum": 1},
        "status": _one_of(*Status.values),
        "verdict": _one_of("", *Verdict),
        "stage": _one_of("", *Stage),
        "reason": _TEXT,
        "at": _TIME,
        "payload": {"type": "object"},
    }
)
RUN = _object(
    {
        "seq": _SEQ,
        "kind": {"type": "string", "examples": [*KINDS, "progress"]},
        "at": _TIME,
        "payload": {"type": "object"},
        "run": {
            "type": ["object", "null"],
            "description": "The run's status, spending and best time; null with kind progress.",
        },
    }
)
QUEUE = _object(
    {
        "seq": _SEQ,
        "kind": _one_of(*broadcast.LIFECYCLE, "runner", "job"),
        "device": _TEXT,
        "status": _one_of(*Status.values),
        "evaluation": {**_ID, "type": ["string", "null"]},
        "submission": {**_ID, "type": ["string", "null"]},
        "verdict": _one_of("", *Verdict),
        "at": _TIME,
        "runner": _TEXT,
        "state": _TEXT,
    },
    optional=("status", "evaluation", "submission", "verdict", "at", "runner", "state"),
)
_SOCKETS = (
    ("evaluation", "/ws/evaluations/{id}/", "What happens to an evaluation.", EVALUATION),
    ("run", "/ws/runs/{id}/", "What happens in an optimisation run.", RUN),
    ("queue", "/ws/queue/", "What happens in all queues, and to runners.", QUEUE),
)


def document(host: str, *, secure: bool) -> Schema:
    """The whole document of a site at `host`."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "kbench",
            "version": "1",
            "description": "Sockets only tell: what clients send is ignored. They close with 4401"
            " for a token that does not allow reading, and with 4404 for what does not exist"
            " for this user. Without a token, the header Origin must name this site.",
        },
        "servers": {
            "site": {
                "host": host,
                "protocol": "wss" if secure else "ws",
                "security": [
                    {"$ref": f"#/components/securitySchemes/{name}"} for name in _SECURITY
                ],
            }
        },
        "channels": {name: _channel(name, *socket) for name, *socket, _ in _SOCKETS},
        "operations": {name: _operation(name) for name, *_ in _SOCKETS},
        "components": {
            "securitySchemes": _SECURITY,
            "messages": {
                name: {"contentType": "application/json", "payload": schema}
                for name, _, _, schema in _SOCKETS
            },
        },
    }


_SECURITY: Schema = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The header `Authorization: Bearer TOKEN` of the handshake.",
    },
    "session": {
        "type": "httpApiKey",
        "in": "cookie",
        "name": "sessionid",
        "description": "Of a page of this site. What is public needs neither.",
    },
}


def _channel(name: str, address: str, words: str) -> Schema:
    found: Schema = {
        "address": address,
        "description": f"{words} {_SINCE}",
        "messages": {"event": {"$ref": f"#/components/messages/{name}"}},
    }
    if "{id}" in address:
        found["parameters"] = {"id": {"description": "Its id in the API."}}
    return found


def _operation(name: str) -> Schema:
    return {"action": "receive", "channel": {"$ref": f"#/channels/{name}"}}


@require_safe
def asyncapi(request: HttpRequest) -> JsonResponse:
    """The document of this site."""
    return JsonResponse(document(request.get_host(), secure=request.is_secure()))
