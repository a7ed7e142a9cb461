"""What the sensors of a device say now: temperature, clocks and power, as far as they exist."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.host import nvml

_SYSTEM = Path("/sys")
_CPUINFO = Path("/proc/cpuinfo")
_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
"""Drivers in hwmon whose temperatures are the processor's."""
_ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal")


def read(kind: DeviceKind, index: int) -> dict[str, float]:
    """Values by the names of `gpu_runner.data.event.SENSORS`; what is not known is left out."""
    return _gpu(index) if kind is DeviceKind.CUDA else cpu(_SYSTEM, _CPUINFO)


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


def cpu(system: Path, cpuinfo: Path) -> dict[str, float]:
    """The hottest of the processor's sensors, and the mean clock of its cores, in °C and MHz."""
    found: dict[str, float] = {}
    if temperatures := [*_chips(system), *_zones(system)]:
        found["temperature_c"] = max(temperatures) / 1000
    files = system.glob("devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")
    clocks = [value / 1000 for path in files if (value := _number(path)) is not None]
    if not clocks:
        with contextlib.suppress(OSError):
            said = re.findall(r"^cpu MHz\s*: ([\d.]+)$", cpuinfo.read_text(), re.MULTILINE)
            clocks = [float(value) for value in said]
    if clocks:
        found["clock_mhz"] = sum(clocks) / len(clocks)
    return found


def _chips(system: Path) -> list[float]:
    """Thousandths of a degree."""
    named = [path for path in system.glob("class/hwmon/hwmon*") if _text(path / "name") in _CHIPS]
    inputs = [file for path in named for file in path.glob("temp*_input")]
    return [value for path in inputs if (value := _number(path)) is not None]


def _zones(system: Path) -> list[float]:
    zones = system.glob("class/thermal/thermal_zone*")
    named = [path for path in zones if _text(path / "type") in _ZONES]
    return [value for path in named if (value := _number(path / "temp")) is not None]


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _number(path: Path) -> float | None:
    try:
        return float(_text(path))
    except ValueError:
        return None
