"""WebSockets write at once: whole frames, in their order, also where a client is slow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from autobahn.websocket.protocol import WebSocketProtocol
from daphne.ws_protocol import WebSocketFactory
from twisted.internet.error import ConnectionLost

from kbench_web import asgi, prompt_sockets
from kbench_web.prompt_sockets import PromptProtocol, text_frame, write_now


class Connection:
    """Takes `room` bytes at once, and the others when the event loop comes."""

    connected, disconnecting = 1, False
    dataBuffer = b""

    def __init__(self, room: int | Exception = 1_000_000) -> None:
        self.room, self.wire, self.later = room, b"", b""
        self._tempDataBuffer: list[bytes] = []

    def writeSomeData(self, data: bytes) -> int | Exception:
        if isinstance(self.room, Exception):
            return self.room
        self.wire += data[: self.room]
        return len(data[: self.room])

    def write(self, data: bytes) -> None:
        self._tempDataBuffer.append(data)
        self.later += data


def test_a_frame_says_its_size_in_bytes() -> None:
    assert asgi.prompt_sockets is prompt_sockets
    assert WebSocketFactory.protocol is PromptProtocol, "the server uses it"
    assert text_frame("µs") == b"\x81\x03" + "µs".encode()
    for size in (0, 125, 126, 65_535, 65_536):
        frame = text_frame("x" * size)
        assert frame[0] == 0x81
        assert frame.endswith(b"x" * size)
        two, eight = int.from_bytes(frame[2:4], "big"), int.from_bytes(frame[2:10], "big")
        assert {2: frame[1], 4: two, 10: eight}[len(frame) - size] == size


def test_a_client_gets_all_at_once_and_a_slow_one_the_rest_in_order() -> None:
    connection = Connection()
    write_now(connection, b"abc")
    assert (connection.wire, connection.later) == (b"abc", b"")
    connection = Connection(room=2)
    write_now(connection, b"abc")
    connection.room = 100
    write_now(connection, b"def")
    assert (connection.wire, connection.later) == (b"ab", b"cdef")
    connection = Connection(room=ConnectionLost())
    write_now(connection, b"abc")
    assert connection.later == b"abc", "a lost connection is left to the event loop"
    encrypted: Any = SimpleNamespace(connected=1, wire=b"")
    encrypted.write = lambda data: setattr(encrypted, "wire", encrypted.wire + data)
    write_now(encrypted, b"abc")
    assert encrypted.wire == b"abc", "what is no plain connection is written by itself"


def test_a_socket_that_is_not_open_or_bytes_are_left_to_daphne(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[object] = []
    daphnes = PromptProtocol.__mro__[1]
    monkeypatch.setattr(daphnes, "serverSend", lambda self, *what: sent.append(what))
    protocol = PromptProtocol()
    protocol.send_queue, protocol._perMessageCompress = [], None
    protocol.transport = Connection()
    protocol.state = WebSocketProtocol.STATE_CLOSING
    protocol.serverSend("late")
    protocol.state = WebSocketProtocol.STATE_OPEN
    protocol.serverSend(b"bytes", True)
    protocol.serverSend("text")
    assert sent == [("late", False), (b"bytes", True)]
    assert protocol.transport.wire == text_frame("text")
