"""Processes of the daemon's own that look at its device, and that it never waits for.

They may hang with the device's driver.
"""

from __future__ import annotations

import json
import logging
import mmap
import multiprocessing
import os
import signal
import struct
import time
from collections.abc import Callable, Sequence

from gpu_runner.daemon import lineage
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.device_log import read_sensors
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.tools import health

logger = logging.getLogger(__name__)

Look = Callable[[SupervisorConfig], str]
"""Looks at the device, marks it unfit or clears the mark, and returns the reason or nothing."""

_PERIOD_S = 15.0  # chosen: temperatures change as slowly
_FRESH_S = 60.0  # what is older says nothing of now
_HEAD = struct.Struct("<dI")  # monotonic seconds of the reading, length of its JSON
_BYTES = 4096  # chosen: several times what one reading takes

Read = Callable[[DeviceKind, int], dict[str, float]]
_fork = multiprocessing.get_context("fork")


class Child:
    """One function in a process, one run of it at a time."""

    def __init__(self) -> None:
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

    def start(self, target: Callable[..., None], *arguments: object) -> None:
        """Run a function. Its process ends with the daemon, and by the signals that end others."""
        self._process = _fork.Process(target=_run, args=(os.getpid(), target, arguments))
        self._process.start()

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None


def _run(parent: int, target: Callable[..., None], arguments: tuple[object, ...]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    lineage.die_with(parent)
    target(*arguments)


class Fitness(Child):
    """The mark on the device, and a process of its own that looks whether it is still right.

    A look can take a minute, or hang with the device's driver; the daemon never waits for one.
    """

    def __init__(
        self,
        config: SupervisorConfig,
        recheck_s: float,
        prepare: tuple[Look, Look] | None = None,
    ) -> None:
        """Look every `recheck_s` seconds while the device is unfit.

        prepare: what makes the host ready for its first evaluation, before and after the first
        look at a GPU; each says why it failed.
        """
        super().__init__()
        self._config = config
        self._recheck_s = recheck_s
        self._prepare = prepare
        self._due_at = time.monotonic() + recheck_s

    def begin(self) -> None:
        """Make the host ready, and learn what a healthy GPU is like before a submission has run."""
        looks = [health.look] if self._config.kind is DeviceKind.CUDA else []
        before, after = ([step] for step in self._prepare) if self._prepare else ([], [])
        self._look_by([*before, *looks, *after])

    def reason(self) -> str:
        """Why no job may be taken now, or empty; starts another look when it is time."""
        if self.has_ended():
            self._due_at = time.monotonic() + self._recheck_s
        reason = health.unfit(self._config)
        if reason and not self.is_started and time.monotonic() >= self._due_at:
            self._look_by([health.look])
        return reason

    def _look_by(self, steps: Sequence[Look]) -> None:
        if steps:
            self.start(_look_once, self._config, steps)


def _look_once(config: SupervisorConfig, steps: Sequence[Look]) -> None:
    lineage.adopt_orphans()
    for step in steps:
        reason = step(config)
        logger.info("%s of %s: %s", step.__name__, config.device, reason or "it works")


class Sensors(Child):
    """The latest reading of a device, kept up to date by a child."""

    def __init__(
        self, config: SupervisorConfig, read: Read = read_sensors, period_s: float = _PERIOD_S
    ) -> None:
        super().__init__()
        self._config, self._read, self._period_s = config, read, period_s
        self._memory = mmap.mmap(-1, _BYTES)
        self._due_at = 0.0

    def keep(self) -> None:
        """Start reading; again if the child has died, but not at once."""
        self.has_ended()
        if not self.is_started and time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + _FRESH_S
            self.start(self._run)

    def latest(self) -> dict[str, float]:
        """The last reading; nothing where none is fresh."""
        at, length = _HEAD.unpack_from(self._memory)
        if not at or time.monotonic() - at > _FRESH_S:
            return {}
        try:
            values = json.loads(self._memory[_HEAD.size : _HEAD.size + length])
        except ValueError:
            return {}  # it is being written
        return {str(name): float(value) for name, value in values.items()}

    def _run(self) -> None:
        while True:
            text = json.dumps(self._read(self._config.kind, self._config.index)).encode()
            if len(text) <= _BYTES - _HEAD.size:
                self._memory[_HEAD.size : _HEAD.size + len(text)] = text
                _HEAD.pack_into(self._memory, 0, time.monotonic(), len(text))
            time.sleep(self._period_s)
