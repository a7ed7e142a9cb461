"""A process of the daemon's own that may hang with a device's driver, so nobody waits for it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any

from gpu_runner.daemon import lineage

_fork = multiprocessing.get_context("fork")


class Child:
    """One function in a process, one run of it at a time."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._process: multiprocessing.process.BaseProcess | None = None

    @property
    def pids(self) -> list[int]:
        """The process, if there is one: nobody may sweep it away."""
        process = self._process
        return [process.pid] if process is not None and process.pid else []

    @property
    def is_started(self) -> bool:
        """Whether there is a process, alive or not yet seen to have ended."""
        return self._process is not None

    def has_ended(self) -> bool:
        """Whether the process has ended by itself since the last look; then it is forgotten."""
        if self._process is None or self._process.is_alive():
            return False
        self.end()
        return True

    def start(self, target: Callable[..., None], *arguments: Any) -> None:
        """Run a function. Its process ends with the daemon, and by the signals that end others."""
        self._process = _fork.Process(target=_run, args=(os.getpid(), target, arguments))
        self._process.start()

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None


def _run(parent: int, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    lineage.die_with(parent)
    target(*arguments)
