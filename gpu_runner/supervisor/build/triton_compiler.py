"""Compiles Triton kernels that a module's process asks for, in a jail that never runs it."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import threading

from gpu_runner.data import asking
from gpu_runner.supervisor.build.importer import module_jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import unnamed
from gpu_runner.supervisor.host.jail import JailError
from gpu_runner.supervisor.host.process import ChildProcess

_MOST_BYTES = 8 * asking.LIMIT_BYTES
"""Of requests and answers together, since whoever gets them may keep their memory.

Source: chosen: an archive, which holds what honest kernels ask for, is an eighth of it.
"""


class TritonCompiler:
    """Starts its process when something is asked for, in the thread that asks.

    Once that process has ended, or taken too long, whoever asks has to compile.
    """

    def __init__(self, config: SupervisorConfig) -> None:
        """What is asked for may take as long as a build."""
        self._config = config
        self._child: ChildProcess | None = None
        self._socket: socket.socket | None = None
        self._starting = threading.Lock()  # `close` may come from another thread
        self._is_over = False
        self._left = _MOST_BYTES

    def answer(self, content: bytes) -> tuple[dict[str, str], bytes | None]:
        """The key of a request, and what was made of it."""
        told = {"key": hashlib.sha256(content).hexdigest()}
        with unnamed("request", content) as request, unnamed("made") as made:
            self._left -= len(content)
            if self._left < 0 or not self._served(request.fileno(), made.fileno()):
                self.close()
                return told, None
            answer = os.pread(made.fileno(), asking.LIMIT_BYTES, 0)
            self._left -= len(answer)
            return told, answer or None

    def _served(self, request: int, made: int) -> bool:
        try:
            asked = self._asked()
            if asked is None:
                return False
            socket.send_fds(asked, [asking.TRITON], [request, made])
            return bool(asked.recv(1))
        except (JailError, OSError):
            return False

    def _asked(self) -> socket.socket | None:
        with self._starting:
            if self._socket is None and not self._is_over:
                self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                self._socket.settimeout(self._config.build_timeout_s)
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
        with self._starting:
            self._is_over = True
            ours, self._socket = self._socket, None
            child, self._child = self._child, None
        if child is not None:
            child.kill()
        if ours is not None:
            ours.close()
