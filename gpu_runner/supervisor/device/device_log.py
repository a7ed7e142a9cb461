"""What a device's sensors say: now, and before and after each block of a measurement."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.environment import Block, DeviceState
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.cpu import CPUINFO, SYSTEM, clock_mhz, numbers, text_of
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.nvml import NvmlError

_THROTTLED = {
    "hardware slowdown",
    "hardware thermal slowdown",
    "software thermal slowdown",
    "hardware power brake",
}
"""Reasons of `nvml.state` for which a block does not show what the device can do."""

_CAPPED = {"software power cap"}
_LOWERED = {
    "thermal": "throttled",
    "reliability": "throttled",
    "power": "capped",
    "board": "capped",
}
_LONG_ENOUGH = 0.01
"""Share of a block for which clocks must have been lowered before it is flagged."""
_SYSTEM = Path("/sys")
_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
"""Drivers in hwmon whose temperatures are the processor's."""
_ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal")


@dataclass(frozen=True)
class Reading:
    """One look: what to show, and totals that only ever grow."""

    shown: DeviceState
    totals: Mapping[str, float]


Read = Callable[[SupervisorConfig], Reading]


class DeviceLog:
    """The blocks of one evaluation, for its environment.

    A block has name, seconds, before and after (MHz, W, degrees Celsius, and reasons for lowered
    clocks, as far as they are known), `throttled`: heat, a fault or a power brake lowered the
    clocks; `capped`: the power limit did. On a CPU steal_share is the part of all CPU time that
    other machines of the same host took. A device that cannot be read has `unknown`, the reason.
    """

    def __init__(self, config: SupervisorConfig, read: Read | None = None) -> None:
        default = _read_gpu if config.kind is DeviceKind.CUDA else _read_cpu
        self._config, self._read = config, read or default
        self.blocks: list[Block] = []

    @contextlib.contextmanager
    def block(self, name: str) -> Iterator[None]:
        """Read the device before and after, also where the block fails."""
        before, began = self._reading(), time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - began
            self.blocks.append(_block(name, seconds, before, self._reading()))

    def _reading(self) -> Reading:
        try:
            return self._read(self._config)
        except NvmlError as error:
            return Reading(DeviceState(unknown=str(error)), {})


def _block(name: str, seconds: float, before: Reading, after: Reading) -> Block:
    grown = {
        what: after.totals[what] - total
        for what, total in before.totals.items()
        if what in after.totals
    }
    reasons = {*before.shown.throttle_reasons, *after.shown.throttle_reasons}
    limit_ns = _LONG_ENOUGH * seconds * 1e9
    lowered = {_LOWERED[what] for what in _LOWERED if grown.get(f"{what}_ns", 0) > limit_ns}
    ticks = grown.get("cpu_time")
    return Block(
        name=name,
        seconds=round(seconds, 3),
        before=before.shown,
        after=after.shown,
        throttled=bool(reasons & _THROTTLED or grown.get("throttles", 0) > 0)
        or "throttled" in lowered,
        capped=bool(reasons & _CAPPED) or "capped" in lowered,
        steal_share=round(grown["steal_time"] / ticks, 4) if ticks else None,
    )


def _read_gpu(config: SupervisorConfig) -> Reading:
    shown = nvml.state(config.index)
    lowered = nvml.lowered_ns(config.index)
    return Reading(shown, {f"{name}_ns": float(total) for name, total in lowered.items()})


def _read_cpu(config: SupervisorConfig) -> Reading:
    mhz = clock_mhz()
    load = round(os.getloadavg()[0], 2)
    shown = DeviceState(load=load, cpu_mhz=None if mhz is None else round(mhz))
    totals = _cpu_times()
    throttles = numbers(SYSTEM, "cpu[0-9]*/thermal_throttle/core_throttle_count")
    if throttles:
        totals["throttles"] = sum(throttles)
    return Reading(shown, totals)


def _cpu_times() -> dict[str, float]:
    """Clock ticks of all CPUs together, and of those the ones that another machine took."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        ticks = [float(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
        return {"cpu_time": sum(ticks[:8]), "steal_time": ticks[7]}
    return {}


def read_sensors(kind: DeviceKind, index: int) -> dict[str, float]:
    """Values by the names of `gpu_runner.data.event.SENSORS`; what is not known is left out."""
    return _gpu(index) if kind is DeviceKind.CUDA else cpu_sensors(_SYSTEM, CPUINFO)


def _gpu(index: int) -> dict[str, float]:
    with contextlib.suppress(nvml.NvmlError):
        state = nvml.state(index)
        found = {
            "temperature_c": state.temperature_c,
            "clock_mhz": state.sm_mhz,
            "memory_clock_mhz": state.memory_mhz,
            "power_w": state.power_w,
        }
        return {name: float(value) for name, value in found.items() if value is not None}
    return {}


def cpu_sensors(system: Path, cpuinfo: Path) -> dict[str, float]:
    """The hottest of the processor's sensors, and the mean clock of its cores, in °C and MHz."""
    found: dict[str, float] = {}
    if temperatures := [*_chips(system), *_zones(system)]:
        found["temperature_c"] = max(temperatures) / 1000
    if (clock := clock_mhz(system / "devices/system/cpu", cpuinfo)) is not None:
        found["clock_mhz"] = clock
    return found


def _chips(system: Path) -> list[float]:
    """Thousandths of a degree."""
    chips = [path for path in system.glob("class/hwmon/hwmon*") if text_of(path / "name") in _CHIPS]
    return [value for path in chips for value in numbers(path, "temp*_input")]


def _zones(system: Path) -> list[float]:
    zones = system.glob("class/thermal/thermal_zone*")
    named = [path for path in zones if text_of(path / "type") in _ZONES]
    return [value for path in named for value in numbers(path, "temp")]
