"""One member of each group for a whole process, which tells all its sockets at once.

A socket that joined by itself would cost a subscription, and a thread's turn for every message.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer

log = logging.getLogger(__name__)

_PAUSE_S = 0.1
"""After a message that can't be read, so that a broken connection doesn't fill the log."""


class Watcher(Protocol):
    """A socket that wants to hear of a group."""

    async def hear(self, seq: int, text: str) -> None:
        """Take a message: its number, 0 for one that is not kept, and its JSON."""


class Hub:
    """The watchers of one event loop."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[Watcher]] = {}
        self._layer: Any = None
        self._channel = ""
        self._task: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()

    async def join(self, group: str, watcher: Watcher) -> None:
        """From now on `watcher` hears what is sent to the group."""
        async with self._changing:  # who comes second must not return before the first is heard
            await self._open()
            if group not in self._watchers:
                await self._layer.group_add(group, self._channel)
            self._watchers.setdefault(group, set()).add(watcher)

    async def leave(self, group: str, watcher: Watcher) -> None:
        """Tell `watcher` nothing more."""
        async with self._changing:
            watchers = self._watchers.get(group, set())
            watchers.discard(watcher)
            if not watchers and self._watchers.pop(group, None) is not None:
                await self._layer.group_discard(group, self._channel)

    async def _open(self) -> None:
        """Listen, on a new channel if the one before has ended."""
        layer = get_channel_layer()
        if self._task is not None and not self._task.done() and layer is self._layer:
            return
        self._layer = layer
        self._channel = await self._layer.new_channel()
        for group in self._watchers:
            await self._layer.group_add(group, self._channel)
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        """Pass messages on; one that can't be read is ignored, and the next one is heard."""
        layer, channel = self._layer, self._channel
        while layer is self._layer:
            try:
                group, seq, text = _read(await layer.receive(channel))
            except Exception as error:  # of any kind: what stands in Redis is anybody's
                log.warning("ignored an unreadable message to sockets: %r", error)
                await asyncio.sleep(_PAUSE_S)
            else:
                await self._tell(group, seq, text)

    async def _tell(self, group: str, seq: int, text: str) -> None:
        for watcher in tuple(self._watchers.get(group, ())):
            try:
                await watcher.hear(seq, text)
            except Exception:  # of a socket that is just closing; the others are told
                log.debug("a watcher of %s missed a message", group, exc_info=True)


def _read(message: Any) -> tuple[str, int, str]:
    """Group, number and text of a message; raises an exception if it is no message of ours."""
    group, seq, text = message["group"], message["seq"], message["text"]
    if not (isinstance(group, str) and isinstance(seq, int) and isinstance(text, str)):
        raise TypeError(f"a message with the wrong types: {message!r:.200}")
    return group, seq, text


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
