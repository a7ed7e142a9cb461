"""WebSockets that write at once: a thousand watchers hear of an event within a tenth of a second.

Twisted has its event loop wait for each socket before it writes, which costs more than the rest of
a frame. It is only asked where a client is too slow to take all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol

_TEXT = 0x81  # a whole message in one frame, not masked
_SHORT, _MEDIUM = 126, 2**16


class Transport(Protocol):
    """What is used of `twisted.internet.tcp.Connection`."""

    def write(self, data: bytes) -> None:
        """Have all of it written, some time."""

    def writeSomeData(self, data: bytes) -> int | Exception:
        """Write what the socket takes now; how much, or what went wrong."""


class PromptProtocol(WebSocketProtocol):  # type: ignore[misc]
    """Daphne's protocol, but for texts to an open socket."""

    def serverSend(self, content: object, binary: bool = False) -> None:  # noqa: FBT001, FBT002
        """Write a text at once; leave all else to Daphne."""
        plain = self.state == self.STATE_OPEN and not self.send_queue
        if binary or not plain or self._perMessageCompress is not None:
            super().serverSend(content, binary)
        else:
            write_now(self.transport, text_frame(content))


@lru_cache(maxsize=64)
def text_frame(content: str) -> bytes:
    """A text as a frame of RFC 6455; the same for all watchers, so it is made once."""
    body = content.encode()
    size = len(body)
    if size < _SHORT:
        return bytes((_TEXT, size)) + body
    if size < _MEDIUM:
        return bytes((_TEXT, 126)) + size.to_bytes(2, "big") + body
    return bytes((_TEXT, 127)) + size.to_bytes(8, "big") + body


def write_now(transport: Transport, frame: bytes) -> None:
    """Write what the socket takes, and leave the rest to the event loop.

    A transport that still has something to write gets it all, or frames would overtake others.
    """
    taken: int | Exception = 0
    if getattr(transport, "connected", 0) and not _waits(transport):
        taken = transport.writeSomeData(frame)
    if not isinstance(taken, int):
        taken = 0  # the connection is lost: the event loop finds out by the same write
    if taken < len(frame):
        transport.write(frame[taken:])


def _waits(transport: Any) -> bool:
    """Whether it holds something that is not written yet, or is no plain connection."""
    if not hasattr(transport, "writeSomeData"):
        return True
    return bool(transport.dataBuffer or transport._tempDataBuffer or transport.disconnecting)


def install() -> None:
    """Have the server of this process use it."""
    WebSocketFactory.protocol = PromptProtocol
