"""Compiles Triton kernels that a module's process asks for, in a jail that never runs it."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import sys
import time

from gpu_runner.data import asking
from gpu_runner.supervisor.build.importer import module_jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import unnamed
from gpu_runner.supervisor.host.jail import JailError
from gpu_runner.supervisor.host.process import ChildProcess


class TritonCompiler:
    """Starts its process when something is asked for, in the thread that asks.

    Once that process has ended, or taken too long, whoever asks has to compile.
    """

    def __init__(self, config: SupervisorConfig, deadline: float) -> None:
        """deadline: on the monotonic clock, by which all must be done."""
        self._config, self._deadline = config, deadline
        self._child: ChildProcess | None = None
        self._socket: socket.socket | None = None
        self._is_over = False

    def answer(self, descriptors: list[int]) -> tuple[dict[str, str], bytes | None]:
        """The key of a request, and what was made of it. descriptors: of the request's file."""
        content = content_of(descriptors, asking.LIMIT_BYTES)
        told = {"key": hashlib.sha256(content).hexdigest()}
        with unnamed("request", content) as request, unnamed("made") as made:
            if not self._served(request.fileno(), made.fileno()):
                self.close()
                return told, None
            return told, os.pread(made.fileno(), asking.LIMIT_BYTES, 0) or None

    def _served(self, request: int, made: int) -> bool:
        try:
            asked = self._asked()
            if asked is None:
                return False
            socket.send_fds(asked, [asking.TRITON], [request, made])
            asked.settimeout(max(0.1, self._deadline - time.monotonic()))
            return bool(asked.recv(1))
        except (JailError, OSError):
            return False

    def _asked(self) -> socket.socket | None:
        if self._socket is None and not self._is_over:
            self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            words = ["-m", "gpu_runner.engine.runner.triton_compiler", str(theirs.fileno())]
            with theirs:
                self._child = ChildProcess(
                    module_jail(self._config),
                    [sys.executable, *words],
                    jailed=not self._config.allow_unjailed,
                    descriptors=[theirs.fileno()],
                )
            self._child.watch()
        return self._socket

    def close(self) -> None:
        """End its process for good."""
        self._is_over = True
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._child is not None:
            self._child.kill()
            self._child = None


def content_of(descriptors: list[int], limit_bytes: int) -> bytes:
    """What a file holds that came with a request; nothing if none came."""
    if not descriptors or not stat.S_ISREG(os.fstat(descriptors[0]).st_mode):
        return b""
    return os.pread(descriptors[0], limit_bytes, 0)
