"""Reads a device's sensors in a process of its own, which may hang with the device's driver."""

from __future__ import annotations

import json
import mmap
import struct
import time
from collections.abc import Callable

from gpu_runner.daemon.child import Child
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device import sensors
from gpu_runner.supervisor.host.config import SupervisorConfig

_PERIOD_S = 15.0  # chosen: temperatures change as slowly
_FRESH_S = 60.0  # what is older says nothing of now
_HEAD = struct.Struct("<dI")  # monotonic seconds of the reading, length of its JSON
_BYTES = 4096  # chosen: several times what one reading takes

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
        self._child = Child()

    @property
    def pids(self) -> list[int]:
        """The child, if it runs: nobody may sweep it away."""
        return self._child.pids

    def keep(self) -> None:
        """Start reading; again if the child has died, but not at once."""
        self._child.has_ended()
        if not self._child.is_started and time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + _FRESH_S
            self._child.start(self._run)

    def end(self) -> None:
        """Stop reading."""
        self._child.end()

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
