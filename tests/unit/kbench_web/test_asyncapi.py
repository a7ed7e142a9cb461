"""The sockets' document against what sockets send, and who may open one with a token."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.test import Client

from gpu_runner.data.event import EventKind
from kbench_web import asyncapi
from kbench_web.asgi import application
from kbench_web.socket_access import UNAUTHORIZED
from runs_app.routing import websocket_urlpatterns
from tests import factories as make

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("jobs")]

BUILD = {"stage": "build", "state": "running", "elapsed_s": 0.1, "detail": ""}


def test_every_socket_is_described() -> None:
    document = Client().get("/api/v1/asyncapi.json").json()
    assert document["asyncapi"] == "3.0.0"
    described = [each["address"].count("/") for each in document["channels"].values()]
    assert len(described) == len(websocket_urlpatterns)
    for name in document["operations"]:
        assert name in document["channels"]
        assert name in document["components"]["messages"]
    assert set(document["components"]["securitySchemes"]) == {"token", "session"}


def socket(path: str, authorization: str) -> WebsocketCommunicator:
    """A program's socket: it shows a token, and no origin."""
    headers = [(b"host", b"localhost"), (b"authorization", authorization.encode())]
    return WebsocketCommunicator(application, path, headers=headers)


async def heard(communicator: WebsocketCommunicator, schema: Any, count: int) -> None:
    for _ in range(count):
        message = await communicator.receive_json_from(timeout=60)
        jsonschema.validate(message, schema)
        assert set(message) <= set(schema["properties"])


async def test_a_token_opens_a_private_socket_and_messages_are_as_described() -> None:
    user = await sync_to_async(make.make_user)()
    token = await sync_to_async(make.make_token)(user, scopes=["read"])
    evaluation = await sync_to_async(make.make_evaluation)(user=user, private=True)
    path = f"/ws/evaluations/{evaluation.pk}/"
    evaluations = socket(path, f"Bearer {token}")
    queue = socket("/ws/queue/", f"bearer {token}")
    assert (await evaluations.connect())[0]
    assert (await queue.connect())[0]
    await sync_to_async(make.start)(evaluation)
    await sync_to_async(make.send)(evaluation, EventKind.STAGE, BUILD, seq=2)
    await heard(evaluations, asyncapi.EVALUATION, 3)
    await heard(queue, asyncapi.QUEUE, 1)
    await evaluations.disconnect()
    await queue.disconnect()


async def test_a_runs_messages_are_as_described() -> None:
    user = await sync_to_async(make.make_user)()
    token = await sync_to_async(make.make_token)(user)
    run = await sync_to_async(make.make_run)(user=user)
    await sync_to_async(make.make_run_event)(run, "paused", {"reason": "by its owner"})
    runs = socket(f"/ws/runs/{run.pk}/", f"Bearer {token}")
    assert (await runs.connect())[0]
    await heard(runs, asyncapi.RUN, 1)
    await runs.disconnect()


@pytest.mark.parametrize("authorization", ["Bearer kb_wrong", "Basic abc", "", "Bearer"])
async def test_a_wrong_token_closes(authorization: str) -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    communicator = socket(f"/ws/evaluations/{evaluation.pk}/", authorization)
    assert (await communicator.connect())[0]
    closed = await communicator.receive_output(5)
    assert (closed["type"], closed["code"]) == ("websocket.close", UNAUTHORIZED)


async def test_anothers_token_sees_nothing_private() -> None:
    owner = await sync_to_async(make.make_user)(username="ada")
    other = await sync_to_async(make.make_user)(username="eve")
    token = await sync_to_async(make.make_token)(other)
    evaluation = await sync_to_async(make.make_evaluation)(user=owner, private=True)
    communicator = socket(f"/ws/evaluations/{evaluation.pk}/", f"Bearer {token}")
    assert (await communicator.connect())[0]
    assert (await communicator.receive_output(5))["code"] == 4404
