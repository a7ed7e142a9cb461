"""Reads GPUs through the driver's management library, without starting nvidia-smi."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

_NAME_BYTES = 96
_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_TEMPERATURE_GPU = 0
_THROTTLE_REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clocks",
}
"""nvmlClocksEventReasons of nvml.h."""


class NvmlError(Exception):
    """No driver, or no such GPU."""


class _Utilities:
    """The library, initialised; every call is checked."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            raise NvmlError(f"no NVIDIA driver on this host: {error}") from None
        self("nvmlInit_v2")

    def __call__(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise NvmlError(f"{name} failed with status {status}")

    def device(self, index: int) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        return handle

    def number(self, name: str, device: ctypes.c_void_p, *arguments: Any) -> int:
        value = ctypes.c_ulonglong(0)
        self(name, device, *arguments, ctypes.byref(value))
        return value.value


@functools.cache
def _nvml() -> _Utilities:
    return _Utilities()


def device_count() -> int:
    """Number of GPUs that the driver knows; 0 where there is no driver."""
    try:
        count = ctypes.c_uint(0)
        _nvml()("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return count.value
    except NvmlError:
        return 0


@functools.cache
def name(index: int) -> str:
    """The maker's name, such as NVIDIA H200."""
    text = ctypes.create_string_buffer(_NAME_BYTES)
    _nvml()("nvmlDeviceGetName", _nvml().device(index), text, ctypes.c_uint(_NAME_BYTES))
    return text.value.decode()


@functools.cache
def compute_capability(index: int) -> tuple[int, int]:
    """Compute capability as (major, minor)."""
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    device = _nvml().device(index)
    _nvml()("nvmlDeviceGetCudaComputeCapability", device, ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


@functools.cache
def driver_version() -> str:
    """Version of the driver."""
    text = ctypes.create_string_buffer(_NAME_BYTES)
    _nvml()("nvmlSystemGetDriverVersion", text, ctypes.c_uint(_NAME_BYTES))
    return text.value.decode()


def memory_bus_bits(index: int) -> int:
    """Width of the memory's bus in bits."""
    return _nvml().number("nvmlDeviceGetMemoryBusWidth", _nvml().device(index))


def cores(index: int) -> int:
    """CUDA cores: float32 lanes of all multiprocessors."""
    return _nvml().number("nvmlDeviceGetNumGpuCores", _nvml().device(index))


def memory_clock_mhz(index: int) -> int:
    """Highest clock of the memory."""
    return _max_clock_mhz(index, _CLOCK_MEMORY)


def sm_clock_mhz(index: int) -> int:
    """Highest clock of the multiprocessors."""
    return _max_clock_mhz(index, _CLOCK_SM)


def _max_clock_mhz(index: int, clock: int) -> int:
    device = _nvml().device(index)
    return _nvml().number("nvmlDeviceGetMaxClockInfo", device, ctypes.c_uint(clock))


def state(index: int) -> dict[str, Any]:
    """Clocks in MHz, temperature in degrees Celsius, power in W, and why clocks are lowered."""
    nvml = _nvml()
    device = nvml.device(index)
    reasons = nvml.number("nvmlDeviceGetCurrentClocksThrottleReasons", device)
    sm, memory = ctypes.c_uint(_CLOCK_SM), ctypes.c_uint(_CLOCK_MEMORY)
    return {
        "sm_mhz": nvml.number("nvmlDeviceGetClockInfo", device, sm),
        "memory_mhz": nvml.number("nvmlDeviceGetClockInfo", device, memory),
        "temperature_c": nvml.number(
            "nvmlDeviceGetTemperature", device, ctypes.c_uint(_TEMPERATURE_GPU)
        ),
        "power_w": nvml.number("nvmlDeviceGetPowerUsage", device) / 1000,
        "throttle_reasons": [word for bit, word in _THROTTLE_REASONS.items() if reasons & bit],
    }
