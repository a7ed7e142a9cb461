"""How a module's process asks the supervisor's workshop to compile something."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import tempfile

_ANSWER_BYTES = 256 << 10  # chosen: more than a log has


class WorkshopGone(Exception):
    """Nobody answers any more."""


class Asking:
    """A socket to the workshop; threads and forks ask one after the other."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._lock = f"/proc/self/fd/{os.memfd_create('asking')}"

    def ask(self, word: bytes, content: bytes, key: str) -> tuple[dict[str, str], bytes | None]:
        """The answer to the request with this key, and the file that came with it, if one did.

        Raises `WorkshopGone`.
        """
        with open(self._lock) as lock, tempfile.TemporaryFile() as file:
            fcntl.flock(lock, fcntl.LOCK_EX)
            file.write(content)
            file.flush()
            try:
                socket.send_fds(self._socket, [word], [file.fileno()])
                while True:  # what a fork that died has asked for may be answered first
                    told, made = self._answer()
                    if told["key"] in ("", key):
                        return told, made
            except OSError as error:
                raise WorkshopGone from error

    def _answer(self) -> tuple[dict[str, str], bytes | None]:
        told, descriptors, _, _ = socket.recv_fds(self._socket, _ANSWER_BYTES, 1)
        if not told:
            raise WorkshopGone
        if not descriptors:
            return json.loads(told), None
        with os.fdopen(descriptors[0], "rb") as made:
            return json.loads(told), made.read()
