"""Sockets: who may listen, what they hear, and what they hear again."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator

from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import Verdict
from kbench_web.asgi import application
from runs_app import consumers
from runs_app.consumers import NOT_FOUND
from tests import factories as make

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("jobs")]

HUGE = "9" * 400
BUILD = {"stage": "build", "state": "running", "elapsed_s": 0.1, "detail": ""}


def socket(path: str) -> WebsocketCommunicator:
    """A visitor's socket."""
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    return WebsocketCommunicator(application, path, headers=headers)


async def heard(communicator: WebsocketCommunicator, count: int) -> list[dict[str, Any]]:
    return [await communicator.receive_json_from(timeout=60) for _ in range(count)]


async def test_a_socket_tells_what_was_and_what_comes() -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    communicator = socket(f"/ws/evaluations/{evaluation.pk}/")
    assert (await communicator.connect())[0]
    (queued,) = await heard(communicator, 1)
    assert (queued["seq"], queued["kind"], queued["status"]) == (1, "queued", "QUEUED")
    await sync_to_async(make.start)(evaluation)
    await sync_to_async(make.send)(evaluation, EventKind.STAGE, BUILD, seq=2)
    started, stage = await heard(communicator, 2)
    assert (started["seq"], started["status"]) == (2, "RUNNING")
    assert (stage["seq"], stage["stage"], stage["payload"]["state"]) == (3, "build", "running")
    await communicator.disconnect()


async def test_a_socket_replays_what_was_missed_only() -> None:
    evaluation = await sync_to_async(make.make_finished_evaluation)(Verdict.WRONG_RESULT)
    communicator = socket(f"/ws/evaluations/{evaluation.pk}/?since=2")
    assert (await communicator.connect())[0]
    (finished,) = await heard(communicator, 1)
    assert (finished["seq"], finished["verdict"]) == (3, "WRONG_RESULT")
    assert await communicator.receive_nothing()
    await communicator.disconnect()


@pytest.mark.parametrize(
    "path",
    [
        "/ws/nope/",
        "/ws/",
        "/",
        "",
        "/ws/queue",
        "/ws/queue/x/",
        "/ws/evaluations/nope/",
        "/ws/evaluations/ABCDEF00-0000-0000-0000-000000000000/",
        "/ws/runs/1/",
        "/ws/runs/\x00/",
        "/ws/%2e%2e/\n",
    ],
)
async def test_an_address_that_no_socket_has_is_refused(path: str) -> None:
    communicator = socket(path)
    connected, code = await communicator.connect()
    assert not connected
    assert code != NOT_FOUND  # that of an accepted socket; this one is answered with HTTP's 403
    await communicator.wait()  # raises what the application raised


@pytest.mark.parametrize("since", ["", "x", "-1", "1.5", "%F0", HUGE])
async def test_a_strange_since_does_no_harm(since: str) -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    communicator = socket(f"/ws/evaluations/{evaluation.pk}/?since={since}")
    assert (await communicator.connect())[0]
    if since == HUGE:
        assert await communicator.receive_nothing()
    else:
        assert await heard(communicator, 1)
    await communicator.disconnect()


async def test_what_a_client_says_is_ignored() -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    communicator = socket(f"/ws/evaluations/{evaluation.pk}/")
    await communicator.connect()
    await heard(communicator, 1)
    await communicator.send_to(text_data="{not json")
    await communicator.send_to(bytes_data=b"\xff")
    await sync_to_async(make.start)(evaluation)
    assert (await heard(communicator, 1))[0]["kind"] == "started"
    await communicator.disconnect()


async def test_what_does_not_exist_is_closed() -> None:
    communicator = socket(f"/ws/evaluations/{uuid4()}/")
    await communicator.connect()
    assert (await communicator.receive_output())["code"] == NOT_FOUND


PLAIN = {"host": "localhost:8000"}
SECURE = {"host": "bench.example", "x-forwarded-proto": "https"}


@pytest.mark.parametrize(
    ("origin", "headers", "opens"),
    [
        ("http://localhost:8000", PLAIN, True),
        ("http://localhost:9999", PLAIN, False),
        ("http://localhost", PLAIN, False),
        ("https://localhost:8000", PLAIN, False),
        ("http://localhost.:8000", PLAIN, False),
        ("null", PLAIN, False),
        ("", PLAIN, False),
        (None, PLAIN, False),
        ("http://[", PLAIN, False),
        ("http://evil.example", PLAIN, False),
        ("http://evil.example", {"host": "evil.example"}, False),
        ("https://bench.example", SECURE, True),
        ("http://bench.example", SECURE, False),
        ("https://bench.example", {"host": "bench.example"}, False),
        ("https://other.example", SECURE, True),
        ("https://a.wide.example", SECURE, True),
        ("http://a.wide.example", SECURE, False),
    ],
)
async def test_a_browser_opens_sockets_from_where_it_may_send_forms(
    origin: str | None, headers: dict[str, str], opens: bool, settings: Any
) -> None:
    """Scheme, host and port of the origin count; a trusted proxy says which scheme it was."""
    settings.ALLOWED_HOSTS = ["localhost", "bench.example"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://other.example", "https://*.wide.example"]
    settings.TRUSTED_PROXIES = [ip_network("10.0.0.1")]
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    sent = headers | ({} if origin is None else {"origin": origin})
    communicator = WebsocketCommunicator(
        application, "/ws/queue/", headers=[(k.encode(), v.encode()) for k, v in sent.items()]
    )
    communicator.scope["client"] = ["10.0.0.1", 1]
    assert (await communicator.connect())[0] is opens
    await communicator.disconnect()


async def test_a_stranger_cannot_say_that_the_connection_is_secure(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["bench.example"]
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    headers = SECURE | {"origin": "https://bench.example"}
    communicator = WebsocketCommunicator(
        application, "/ws/queue/", headers=[(k.encode(), v.encode()) for k, v in headers.items()]
    )
    communicator.scope["client"] = ["9.9.9.9", 1]
    assert not (await communicator.connect())[0]


async def test_a_run_socket_leaves_a_gap_rather_than_send_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumers, "EVENTS_AT_ONCE", 3)
    run = await sync_to_async(make.make_run)()
    for number in range(1, 8):
        await sync_to_async(make.make_run_event)(run, "note", {"text": f"event {number}"})
    communicator = socket(f"/ws/runs/{run.pk}/?since=1")
    assert (await communicator.connect())[0]
    assert [message["seq"] for message in await heard(communicator, 4)] == [2, 3, 4, 7]
    await communicator.disconnect()
    communicator = socket(f"/ws/runs/{run.pk}/?since=4")
    assert (await communicator.connect())[0]
    assert [message["seq"] for message in await heard(communicator, 3)] == [5, 6, 7]
    assert await communicator.receive_nothing()
    await communicator.disconnect()


async def test_the_queue_socket_tells_of_work_and_runners() -> None:
    communicator = socket("/ws/queue/")
    assert (await communicator.connect())[0]
    evaluation = await sync_to_async(make.make_evaluation)()
    secret = await sync_to_async(make.make_evaluation)(private=True)
    await sync_to_async(make.beat)()
    public, private, runner = await heard(communicator, 3)
    assert (public["kind"], public["device"]) == ("queued", "cpu")
    assert public["evaluation"] == str(evaluation.pk)
    assert (private["evaluation"], private["submission"]) == (None, None)
    assert str(secret.pk) not in str(private)
    assert (runner["kind"], runner["runner"], runner["seq"]) == ("runner", "test.host-1", 0)
    await sync_to_async(make.make_finished_evaluation)(mode="ranked")
    await sync_to_async(make.make_finished_evaluation)(mode="ranked", private=True)
    messages = await heard(communicator, 6)
    assert [message["ranked"] for message in messages] == ["", "", "scale", "", "", ""]
    await communicator.disconnect()

    again = socket(f"/ws/queue/?since={public['seq']}")
    assert (await again.connect())[0]
    assert (await heard(again, 1))[0]["seq"] == private["seq"]
    await again.disconnect()
