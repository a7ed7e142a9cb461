"""A stream socket to a child process, read exactly and with a deadline."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time

_LEAST_S = 1.0  # chosen: whoever was stopped in between has not had its time
ANSWER_LIMIT_BYTES = 4 << 20  # chosen: many times the longest answer


class ChannelTimeout(Exception):
    """The child did not answer in time."""


class ChannelClosed(EOFError):
    """The child is gone, or sent less than it announced."""


class Channel:
    """One end of a socket pair; the other end is inherited by a child."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._deadline = time.monotonic()
        self._buffer = bytearray()

    @property
    def descriptor(self) -> int:
        """The supervisor's own end."""
        return self._ours.fileno()

    @property
    def child_descriptor(self) -> int:
        """The descriptor that the child inherits."""
        return self._theirs.fileno()

    def started(self) -> None:
        """The child has its end; drop ours of it, so that its death is seen as an end of file."""
        self._theirs.close()

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()

    def allow(self, seconds: float) -> None:
        """Set the deadline of all that follows."""
        self._deadline = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; 0 once it is over."""
        return max(self._deadline - time.monotonic(), 0.0)

    def is_readable(self, wait_s: float) -> bool:
        """Whether something can be read, or the end be seen, within so many seconds."""
        return bool(self._buffer) or bool(select.select([self._ours], [], [], wait_s)[0])

    def send(self, data: bytes) -> None:
        self._ours.settimeout(max(self.left_s, _LEAST_S))
        try:
            self._ours.sendall(data)
        except TimeoutError:
            raise ChannelTimeout from None
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def read(self, count: int) -> bytes:
        """Exactly `count` bytes."""
        while len(self._buffer) < count:
            self._receive(count - len(self._buffer))
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def ask(self, request: dict[str, object]) -> dict[str, object]:
        """Send a JSON line and return the JSON object that comes back as a line."""
        self.post(request)
        return self.answer()

    def post(self, request: dict[str, object]) -> None:
        """Send a JSON line; `answer` waits for what comes back."""
        self.send(json.dumps(request).encode() + b"\n")

    def answer(self) -> dict[str, object]:
        """The next line, a JSON object."""
        while b"\n" not in self._buffer:
            if len(self._buffer) > ANSWER_LIMIT_BYTES:
                raise ChannelClosed("the answer is too long")
            self._receive(65536)
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        with contextlib.suppress(ValueError):
            answer = json.loads(line)
            if isinstance(answer, dict):
                return answer
        raise ChannelClosed("the answer is not a JSON object")

    def _receive(self, count: int) -> None:
        """What has come counts, however late this process, which may be stopped, looks for it."""
        self._ours.settimeout(self.left_s)
        try:
            data = self._ours.recv(min(count, 1 << 20))
        except (TimeoutError, BlockingIOError):
            raise ChannelTimeout from None
        except OSError as error:
            raise ChannelClosed(str(error)) from None
        if not data:
            raise ChannelClosed("end of file")
        self._buffer += data
