"""Keeps a daemon from taking jobs while its device does not work, and looks at it again."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable

from gpu_runner.daemon import lineage
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor import health
from gpu_runner.supervisor.config import SupervisorConfig

logger = logging.getLogger(__name__)

Look = Callable[[SupervisorConfig], str]
"""Looks at the device, marks it unfit or clears the mark, and returns the reason or nothing."""

_fork = multiprocessing.get_context("fork")


class Fitness:
    """The mark on the device, and a process of its own that looks whether it is still right.

    A look can take a minute, or hang with the device's driver; the daemon never waits for one.
    """

    def __init__(
        self,
        config: SupervisorConfig,
        recheck_s: float,
        look: Look = health.look,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Look every `recheck_s` seconds while the device is unfit."""
        self._config = config
        self._recheck_s = recheck_s
        self._look = look
        self._clock = clock
        self._due_at = clock() + recheck_s
        self._process: multiprocessing.process.BaseProcess | None = None

    @property
    def pids(self) -> list[int]:
        """The process that looks, if one does: nobody may sweep it away."""
        process = self._process
        return [process.pid] if process is not None and process.pid else []

    def begin(self) -> None:
        """Learn what a healthy GPU is like, before the first submission runs on it."""
        if self._config.kind is DeviceKind.CUDA:
            self._start()

    def reason(self) -> str:
        """Why no job may be taken now, or empty; starts another look when it is time."""
        if self._process is not None and not self._process.is_alive():
            self._process.close()
            self._process = None
            self._due_at = self._clock() + self._recheck_s
        reason = health.unfit(self._config)
        if reason and self._process is None and self._clock() >= self._due_at:
            self._start()
        return reason

    def end(self) -> None:
        """End a look that is under way."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None

    def _start(self) -> None:
        self._process = _fork.Process(target=_run, args=(self._config, self._look, os.getpid()))
        self._process.start()


def _run(config: SupervisorConfig, look: Look, parent: int) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    lineage.die_with(parent)
    reason = look(config)
    logger.info("looked at %s: %s", config.device, reason or "it works")
