"""Reads a device's sensors in a process of its own, which may hang with the device's driver."""

from __future__ import annotations

import json
import mmap
import multiprocessing
import os
import signal
import struct
import time
from collections.abc import Callable

from gpu_runner.daemon import lineage
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device import sensors
from gpu_runner.supervisor.host.config import SupervisorConfig

_PERIOD_S = 15.0
_FRESH_S = 60.0  # what is older says nothing of now
_HEAD = struct.Struct("<dI")  # monotonic seconds of the reading, length of its JSON
_BYTES = 4096
_fork = multiprocessing.get_context("fork")

Read = Callable[[DeviceKind, int], dict[str, float]]


class Sensors:
    """The latest reading of a device, kept up to date by a child."""

    def __init__(
        self, config: SupervisorConfig, read: Read = sensors.read, period_s: float = _PERIOD_S
    ) -> None:
        """Nothing runs before `keep`."""
        self._config, self._read, self._period_s = config, read, period_s
        self._memory = mmap.mmap(-1, _BYTES)
        self._due_at = 0.0
        self._process: multiprocessing.process.BaseProcess | None = None

    @property
    def pids(self) -> list[int]:
        """The child, if it runs: nobody may sweep it away."""
        process = self._process
        return [process.pid] if process is not None and process.pid else []

    def keep(self) -> None:
        """Start reading; again if the child has died, but not at once."""
        if self._process is not None and not self._process.is_alive():
            self.end()
        if self._process is None and time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + _FRESH_S
            self._process = _fork.Process(target=self._run, args=(os.getpid(),))
            self._process.start()

    def end(self) -> None:
        """Stop reading."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None

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

    def _run(self, parent: int) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        lineage.die_with(parent)
        while True:
            text = json.dumps(self._read(self._config.kind, self._config.index)).encode()
            if len(text) <= _BYTES - _HEAD.size:
                self._memory[_HEAD.size : _HEAD.size + len(text)] = text
                _HEAD.pack_into(self._memory, 0, time.monotonic(), len(text))
            time.sleep(self._period_s)
