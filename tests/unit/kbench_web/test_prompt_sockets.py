"""WebSockets write at once: whole frames, in their order, also where a client is slow."""

from __future__ import annotations

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


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_frame_says_its_size(size: int) -> None:
    frame = text_frame("x" * size)
    assert frame[0] == 0x81
    assert frame.endswith(b"x" * size)
    lengths = {2: frame[1], 4: int.from_bytes(frame[2:4], "big"), 10: int.from_bytes(frame[2:10])}
    assert lengths[len(frame) - size] == size


def test_letters_are_counted_in_bytes() -> None:
    assert text_frame("µs") == b"\x81\x03" + "µs".encode()


def test_a_client_gets_all_at_once() -> None:
    connection = Connection()
    write_now(connection, b"abc")
    assert (connection.wire, connection.later) == (b"abc", b"")


def test_the_rest_waits_for_a_slow_client_and_nothing_overtakes_it() -> None:
    connection = Connection(room=2)
    write_now(connection, b"abc")
    connection.room = 100
    write_now(connection, b"def")
    assert (connection.wire, connection.later) == (b"ab", b"cdef")


def test_a_lost_connection_is_left_to_the_event_loop() -> None:
    connection = Connection(room=ConnectionLost())
    write_now(connection, b"abc")
    assert connection.later == b"abc"


def test_what_is_no_plain_connection_is_written_by_itself() -> None:
    class Encrypted:
        def __init__(self) -> None:
            self.connected, self.wire = 1, b""

        def write(self, data: bytes) -> None:
            self.wire += data

    transport: Any = Encrypted()
    write_now(transport, b"abc")
    assert transport.wire == b"abc"


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


def test_the_server_uses_it() -> None:
    assert asgi.prompt_sockets is prompt_sockets
    assert WebSocketFactory.protocol is PromptProtocol
