"""Where runners of other hosts get jobs and report, over HTTPS and from their side alone.

It stands before Django: a runner waits here for its next job, and no thread waits with it.
Everything that it says goes into the stream of its token, as from the site's own hosts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.utils import timezone
from redis.exceptions import RedisError

from gpu_runner.data import codec, mailbox
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event
from gpu_runner.data.order import Ask, Order, check_runner_name
from kbench_web.proxies import is_trusted
from runs_app.core.messaging import broadcast, orders
from runs_app.core.messaging.hub import hub
from runs_app.core.messaging.stream import MOST_BYTES
from runs_app.core.runners.handing import hand_over
from runs_app.core.runners.tokens import find_token
from runs_app.models import Runner, RunnerToken

log = logging.getLogger(__name__)

PREFIX = "/runner/v1/"
LONGEST_S = 25.0
"""So long an ask waits for a job: less than the 30 s after which proxies lose patience."""

_SMALL = 64 << 10  # bytes of a body; all have fewer but those with results
_MOST_EVENTS = 500
_MOST_UNREAD = 64 << 20  # bytes of a token's that `ingest_events` has not read yet
_MOST_ASKS = 256  # chosen: open ones of a token, which may be shown by 64 hosts of 4 slots
_REST = 3.0  # chosen: who has looked in vain, or sent much, pauses so many times as long as it took
_LOOK_S = 5.0  # so often it is looked at, should no message come
_RETRY_S = 2

_UNKNOWN = "no runner has this token, or an admin has revoked it; ask an admin for another"

App = Callable[..., Awaitable[Any]]
T = TypeVar("T")


@dataclass(frozen=True)
class _Answer:
    status: int
    document: Any = None


class _Refusal(Exception):
    """An answer other than success; `reason` says what happened, why, and what to do."""

    def __init__(self, status: int, reason: str, field: str = "") -> None:
        super().__init__(reason)
        self.answer = _Answer(status, {"field": field, "reason": reason})


class Gateway:
    """An ASGI application around the site's."""

    def __init__(self, site: App) -> None:
        self.site = site

    async def __call__(self, scope: dict[str, Any], receive: App, send: App) -> None:
        """Answer a runner, or pass the request on."""
        if not scope["path"].startswith(PREFIX):
            await self.site(scope, receive, send)
            return
        try:
            answer = await _answered(scope, receive)
        except _Refusal as refusal:
            answer = refusal.answer
        except DataError as error:
            answer = _Answer(422, {"field": error.field, "reason": error.reason})
        except RecursionError:
            answer = _Answer(422, {"field": "", "reason": "the request is nested too deeply"})
        except (RedisError, OperationalError, InterfaceError, OSError) as error:
            log.warning("a runner was asked to try again later: %s", error)
            reason = "the site cannot reach its database or Redis; try again in a moment"
            answer = _Answer(503, {"field": "", "reason": reason})
        await _send(send, answer)


async def _answered(scope: dict[str, Any], receive: App) -> _Answer:
    path = scope["path"].removeprefix(PREFIX)
    if path not in ("events", *_ANSWERS):
        raise _Refusal(404, f"runners use {PREFIX}take, events and word; update this runner")
    if scope["method"] != "POST":
        raise _Refusal(405, "use POST")
    headers = {name.lower(): value for name, value in scope["headers"]}
    _check_encrypted(scope, headers)
    scheme, _, text = headers.get(b"authorization", b"").decode("latin-1").strip().partition(" ")
    token = await _in_thread(find_token, text.strip()) if scheme.lower() == "bearer" else None
    if token is None:
        raise _Refusal(401, _UNKNOWN)
    if path == "events":
        return await _events(token, headers, receive)
    return await _ANSWERS[path](token, _parsed(await _body(receive, _SMALL)), receive)


async def _take(token: RunnerToken, document: object, receive: App) -> _Answer:
    """The next job of a runner; 204 if none comes for some time."""
    ask = codec.decode(Ask, document)
    if ask.job:
        raise DataError("job", "must be empty: the site says which job is next")
    if _asks[token.pk] >= _MOST_ASKS:
        raise _Refusal(
            429, f"{_MOST_ASKS} requests with this token are open; use another token for more hosts"
        )
    _asks[token.pk] += 1
    try:
        return await _order(token, ask, receive)
    finally:
        _asks[token.pk] -= 1


_asks: Counter[int] = Counter()
"""Open ones, by token."""


async def _order(token: RunnerToken, ask: Ask, receive: App) -> _Answer:
    loop, looks = asyncio.get_running_loop(), _looks.setdefault(token.pk, _Looks())
    deadline = loop.time() + LONGEST_S
    waiting, gone = _Waiting(ask.device), asyncio.create_task(_disconnected(receive))
    gone.add_done_callback(lambda _: waiting.news.set())
    await hub().join(broadcast.QUEUE_GROUP, waiting)
    try:
        while not gone.done():
            waiting.news.clear()
            order = await looks.order(token, ask)
            left_s = deadline - loop.time()
            if order is not None or left_s <= 0:
                return _Answer(204 if order is None else 200, order)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiting.news.wait(), min(left_s, _LOOK_S))
        return _Answer(204)
    finally:
        gone.cancel()
        await hub().leave(broadcast.QUEUE_GROUP, waiting)


class _Looks:
    """Looks for jobs for the open asks of a token: one at a time, so that others have theirs."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._vain: dict[tuple[Any, ...], float] = {}

    async def order(self, token: RunnerToken, ask: Ask) -> Order | None:
        """The next job; None if there is none, as another ask of the runner may just have seen."""
        loop, key = asyncio.get_running_loop(), (ask.runner, ask.boot_id, ask.device, ask.urgencies)
        asked = loop.time()
        async with self._turn:
            began = loop.time()
            if self._vain.get(key, 0.0) > asked:
                return None
            order = await _in_thread(_next_order, token, ask)
            if order is None:
                if len(self._vain) > _MOST_ASKS:
                    self._vain.clear()
                self._vain[key] = began
                await asyncio.sleep(_REST * (loop.time() - began))
        return order


_looks: dict[int, _Looks] = {}
"""By token."""


def _next_order(token: RunnerToken, ask: Ask) -> Order | None:
    if not RunnerToken.objects.filter(pk=token.pk, revoked_at=None).exists():
        raise _Refusal(401, _UNKNOWN)
    return hand_over(token=token, ask=ask, now=timezone.now())


class _Waiting:
    """Hears when a job begins to wait for a device, or a runner of it changes."""

    def __init__(self, device: str) -> None:
        self._device = device
        self.news = asyncio.Event()

    async def hear(self, seq: int, text: str) -> None:
        said = json.loads(text)
        if said.get("device") == self._device and said.get("status", "QUEUED") == "QUEUED":
            self.news.set()


async def _events(token: RunnerToken, headers: dict[bytes, bytes], receive: App) -> _Answer:
    """Keep what a runner reports. Large bodies take long to read: one of a token at a time."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) <= _SMALL:
        return await _in_thread(_keep, token, await _body(receive, _SMALL))
    loop = asyncio.get_running_loop()
    async with _large.setdefault(token.pk, asyncio.Lock()):
        body = await _body(receive, MOST_BYTES)
        began = loop.time()
        answer = await _in_thread(_keep, token, body)
        await asyncio.sleep(_REST * (loop.time() - began))
    return answer


_large: dict[int, asyncio.Lock] = {}
"""Held while a large body is read, by token."""


def _keep(token: RunnerToken, body: bytes) -> _Answer:
    """Keep what a runner reports, in the stream that is read as its own."""
    document = _parsed(body)
    said = document.get("events") if isinstance(document, dict) else None
    if not isinstance(said, list) or len(said) > _MOST_EVENTS:
        raise DataError("events", f"must be a list of at most {_MOST_EVENTS} events")
    for number, each in enumerate(said):
        codec.decode(Event, each, f"events.{number}")
    key, redis = mailbox.events_key(token.mailbox), orders.connection()
    if (redis.memory_usage(key) or 0) > _MOST_UNREAD:
        raise _Refusal(503, "the site hasn't processed this runner's last message yet; try again")
    with redis.pipeline(transaction=True) as pipe:
        for each in said:
            text = json.dumps(each, separators=(",", ":"), allow_nan=False)
            pipe.xadd(key, {mailbox.EVENT: text})
        pipe.execute()
    return _Answer(204)


async def _word(token: RunnerToken, document: object, receive: App) -> _Answer:
    """What the site wants of a runner; nothing of one that it has not heard yet."""
    name = document.get("runner") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise DataError("runner", "must be the runner's name")
    check_runner_name("runner", name)
    return _Answer(200, await _in_thread(_word_to, token, name))


def _word_to(token: RunnerToken, name: str) -> object:
    rows = Runner.objects.select_related("token").filter(token=token)
    runner = rows.filter(name=f"{token.name}.{name}").first()
    return codec.encode(orders.word_to(runner)) if runner is not None else {}


_ANSWERS: dict[str, Callable[[RunnerToken, object, App], Awaitable[_Answer]]] = {
    "take": _take,
    "word": _word,
}


async def _in_thread(function: Callable[..., T], *arguments: object, **options: object) -> T:
    """Beside the thread in which all of the site's pages are made."""
    run: Any = database_sync_to_async(function, thread_sensitive=False)
    found: T = await run(*arguments, **options)
    return found


def _check_encrypted(scope: dict[str, Any], headers: dict[bytes, bytes]) -> None:
    """Where the site is for HTTPS alone, a token that came otherwise was read by others."""
    scheme = scope.get("scheme", "http")
    if is_trusted((scope.get("client") or ("",))[0]):
        scheme = headers.get(b"x-forwarded-proto", scheme.encode()).decode("latin-1")
    if settings.SECURE_SSL_REDIRECT and scheme != "https":
        raise _Refusal(
            403, "use https://. Others may have read the token, so ask an admin to replace it"
        )


async def _body(receive: App, most: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Refusal(400, "the request was cut off")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _Refusal(413, f"the request is larger than {most >> 10} KiB")
        if not message.get("more_body"):
            return b"".join(parts)


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body, parse_constant=_no_json)
    except (ValueError, RecursionError):
        raise _Refusal(400, "the body is not JSON") from None


def _no_json(number: str) -> None:
    raise ValueError(f"{number} is not a JSON number")


async def _disconnected(receive: App) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(send: App, answer: _Answer) -> None:
    body = b""
    if answer.document is not None:
        document = codec.encode(answer.document)
        body = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    headers.append((b"content-length", str(len(body)).encode()))
    if answer.status == 503:
        headers.append((b"retry-after", str(_RETRY_S).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
