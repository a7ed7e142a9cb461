"""`?wait=N` of the API: the answer comes when something has happened, and no thread waits for it.

The site is asked, a group of sockets is joined, and the site is asked again whenever the group
hears of something. All requests but the first count for nobody's limit.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from kbench_web.rate_limit import REPEATED
from runs_app.messaging import broadcast
from runs_app.models import Run

log = logging.getLogger(__name__)

LONGEST_S = 60
_ID = r"[0-9a-fA-F-]{32,36}"
_SUBMISSION = re.compile(rf"(/api/v1/submissions/{_ID})(/status)?")
_RUN = re.compile(rf"/api/v1/runs/{_ID}")
_OVER = (Run.Status.FINISHED.value, Run.Status.STOPPED.value)
_OK = 200

Message = dict[str, Any]
App = Callable[..., Awaitable[Any]]


@dataclass
class _Answer:
    """What the site answered; `state` is its JSON, empty if that is not to be waited for."""

    messages: list[Message] = field(default_factory=list)

    @property
    def state(self) -> dict[str, Any]:
        """The document of an answer that is a success."""
        if not self.messages or self.messages[0].get("status") != _OK:
            return {}
        return dict(json.loads(b"".join(part.get("body", b"") for part in self.messages[1:])))


@dataclass(frozen=True)
class _Watch:
    """What is waited for: `probe` with `query` is the address that tells its state."""

    probe: str
    query: bytes
    wait_s: int
    since: int | None

    def is_due(self, state: dict[str, Any]) -> bool:
        """Whether the answer is to be given now."""
        over = state.get("over", state.get("status") in _OVER)
        return not state or over or (self.since is not None and state["events"] > self.since)

    def group(self, state: dict[str, Any]) -> str:
        """Who hears of it."""
        if "evaluation" in state:
            return broadcast.evaluation_group(state["evaluation"])
        return broadcast.run_group(state["id"])


class LongPoll:
    """An ASGI application around the site's."""

    def __init__(self, site: App) -> None:
        """Wrap the site's application."""
        self.site = site

    async def __call__(self, scope: Message, receive: App, send: App) -> None:
        """Pass the request on, at once or when there is something to tell."""
        watch = _watch(scope)
        if watch is None:
            await self.site(scope, receive, send)
            return
        gone = asyncio.create_task(_disconnected(receive))
        try:
            answer = await self._ask(scope, watch)
            if answer.state and not watch.is_due(answer.state):
                answer = await self._wait(scope, watch, answer, gone)
            if answer.state and watch.probe != scope["path"]:
                answer = await self._ask({**scope, REPEATED: True})
            if not gone.done():
                for message in answer.messages:
                    await send(message)
        finally:
            gone.cancel()

    async def _wait(
        self, scope: Message, watch: _Watch, answer: _Answer, gone: asyncio.Task[None]
    ) -> _Answer:
        """The answer when it is due, when the time is over, or when the client has gone."""
        layer: Any = get_channel_layer()
        loop = asyncio.get_running_loop()
        deadline, group = loop.time() + watch.wait_s, watch.group(answer.state)
        try:
            channel = await layer.new_channel()
            await layer.group_add(group, channel)
        except (RedisError, OSError) as error:
            log.warning("nobody can wait for %s: %s", group, error)
            return answer
        heard = asyncio.create_task(_event(layer, channel))
        try:
            while True:
                answer = await self._ask({**scope, REPEATED: True}, watch)
                left_s = deadline - loop.time()
                if watch.is_due(answer.state) or left_s <= 0 or gone.done():
                    return answer
                await asyncio.wait({heard, gone}, timeout=left_s, return_when="FIRST_COMPLETED")
                if heard.done():
                    heard = asyncio.create_task(_event(layer, channel))
        finally:
            heard.cancel()
            await layer.group_discard(group, channel)

    async def _ask(self, scope: Message, watch: _Watch | None = None) -> _Answer:
        """What the site says now: to the request itself, or to the probe of a watch."""
        if watch is not None:
            headers = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
            path = {"path": watch.probe, "raw_path": watch.probe.encode()}
            scope = {**scope, **path, "query_string": watch.query, "headers": headers}
        answer, asked = _Answer(), False

        async def receive() -> Message:
            nonlocal asked
            if asked:
                await asyncio.Event().wait()
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            answer.messages.append(message)

        await self.site(scope, receive, send)
        return answer


def _watch(scope: Message) -> _Watch | None:
    """What a request waits for; None if for nothing, or if a parameter is wrong."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return None
    path, query = scope["path"], scope["query_string"]
    submission = _SUBMISSION.fullmatch(path)
    if not submission and not _RUN.fullmatch(path):
        return None
    asked = parse_qs(query.decode("latin-1"), keep_blank_values=True)
    wait, since = asked.get("wait", [""])[-1], asked.get("since", ["0"])[-1]
    if not re.fullmatch(r"[0-9]{1,2}", wait) or not 0 < int(wait) <= LONGEST_S:
        return None
    if not re.fullmatch(r"[0-9]{1,9}", since):
        return None
    known = int(since) if "since" in asked else None
    if not submission or submission.group(2):
        return _Watch(path, query, int(wait), known)
    return _Watch(f"{path}/status", b"", int(wait), None) if set(asked) == {"wait"} else None


async def _event(layer: Any, channel: str) -> None:
    """Return when something happened that has a number, unlike the progress of an answer."""
    while (await layer.receive(channel))["seq"] == 0:
        pass


async def _disconnected(receive: App) -> None:
    """Return when the client has gone."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
