"""The energy that a device has used, by its own counter, read from outside a kernel's process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.config import SupervisorConfig

POWERCAP = Path("/sys/class/powercap")
_TICK_S = 0.5  # chosen: five times the slowest counter, a GPU's, which moves every 0.1 s
_LOOK_S = 0.0005  # chosen: a fraction of the quickest counter's millisecond

Joules = Callable[[], float]


class NoCounter(Exception):
    """This host has no such counter, or doesn't let us read it; the text says why."""


def counter(config: SupervisorConfig) -> Joules:
    """What reads the device's counter in joules. Raises `NoCounter`."""
    if config.kind is DeviceKind.CUDA:
        return _gpu(config.index)
    return rapl(POWERCAP)


def _gpu(index: int) -> Joules:
    try:
        nvml.energy_mj(index)
    except nvml.NvmlError as error:
        raise NoCounter(f"this GPU doesn't count its energy: {error}") from None
    return lambda: nvml.energy_mj(index) / 1e3


def rapl(folder: Path) -> Joules:
    """The sum over processor packages, whose counters start again at their largest value."""
    packages = [path for path in folder.glob("intel-rapl:*") if path.name.count(":") == 1]
    if not packages:
        raise NoCounter("this host doesn't count its processors' energy (RAPL)")
    try:
        ranges = {path: _number(path / "max_energy_range_uj") for path in packages}
        last = {path: _number(path / "energy_uj") for path in packages}
    except OSError:
        raise NoCounter("this host doesn't let kbench read its energy counters (RAPL)") from None
    used = 0

    def joules() -> float:
        nonlocal used
        for path, before in last.items():
            last[path] = _number(path / "energy_uj")
            used += (last[path] - before) % (ranges[path] + 1)
        return used / 1e6

    return joules


def _number(path: Path) -> int:
    return int(path.read_text())


class Metered:
    """Energy from one step of a counter to another, with what surrounds it in between.

    It begins at a step and ends with the first one after the work. So it may hold the idle power
    of one more step, which is the error.
    """

    def __init__(self, joules: Joules) -> None:
        self._joules = joules
        self._step_s = self._began = self._before = 0.0

    def begin(self) -> None:
        """Wait for two steps of the counter. Raises `NoCounter` if it stands still."""
        first = self._step()
        self._began, self._before = self._step(), self._joules()
        self._step_s = self._began - first

    def end(self) -> tuple[float, float]:
        """Joules since then, and their relative error."""
        ended = self._step()
        return self._joules() - self._before, self._step_s / (ended - self._began)

    def _step(self) -> float:
        """When the counter moves next."""
        before, deadline = self._joules(), time.monotonic() + _TICK_S
        while self._joules() == before:
            if time.monotonic() > deadline:
                raise NoCounter(f"its energy counter did not move for {_TICK_S:g} s")
            time.sleep(_LOOK_S)
        return time.monotonic()
