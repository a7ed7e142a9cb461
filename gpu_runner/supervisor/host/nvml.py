"""Reads GPUs through the driver's management library, without starting nvidia-smi.

The package nvidia-ml-py could do the calls: it raises where there is no driver, and works after a
fork if it is initialised again. It is not used, because the supervisor needs nothing but the
standard library, also on a GPU host where nothing of kbench is installed, and because it would
save some 90 lines here for 8,000 that run with the supervisor's rights.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from typing import Any

from gpu_runner.data.environment import DeviceState

_NAME_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE of nvml.h
_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_TEMPERATURE_GPU = 0  # nvml.h
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

_LOWERED_BY = {"power": 0, "thermal": 1, "board": 3, "reliability": 5}
"""nvmlPerfPolicyType of nvml.h."""


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
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise NvmlError(f"this driver is too old for {name}") from None
        status = function(*arguments)
        if status != 0:
            raise NvmlError(f"{name} failed with status {status}")

    def device(self, index: int) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        return handle

    def number(self, name: str, device: ctypes.c_void_p, *arguments: object) -> int:
        value = ctypes.c_ulonglong(0)
        self(name, device, *arguments, ctypes.byref(value))
        return value.value

    def text(self, name: str, *arguments: object) -> str:
        buffer = ctypes.create_string_buffer(_NAME_BYTES)
        self(name, *arguments, buffer, ctypes.c_uint(_NAME_BYTES))
        return buffer.value.decode()


def _nvml() -> _Utilities:
    return _of_process(os.getpid())


@functools.cache
def _of_process(pid: int) -> _Utilities:
    """The library does not outlive a fork, as of a worker that runs each job in a child."""
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
    return _nvml().text("nvmlDeviceGetName", _nvml().device(index))


@functools.cache
def uuid(index: int) -> str:
    """The GPU's own name, such as GPU-8932f937-..., by which CUDA's programs can be told of it."""
    return _nvml().text("nvmlDeviceGetUUID", _nvml().device(index))


@functools.cache
def minor_number(index: int) -> int:
    """N of the GPU's device node /dev/nvidiaN, which need not be its index."""
    return _nvml().number("nvmlDeviceGetMinorNumber", _nvml().device(index))


@functools.cache
def compute_capability(index: int) -> tuple[int, int]:
    """Compute capability as (major, minor)."""
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    device = _nvml().device(index)
    _nvml()("nvmlDeviceGetCudaComputeCapability", device, ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


@functools.cache
def driver_version() -> str:
    return _nvml().text("nvmlSystemGetDriverVersion")


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


class _Memory(ctypes.Structure):
    """nvmlMemory_t of nvml.h, in bytes."""

    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


def _memory(index: int) -> _Memory:
    memory = _Memory()
    _nvml()("nvmlDeviceGetMemoryInfo", _nvml().device(index), ctypes.byref(memory))
    return memory


def memory_used(index: int) -> int:
    """Bytes of the GPU's memory in use now, by whomever."""
    return int(_memory(index).used)


def memory_total(index: int) -> int:
    """Bytes of the GPU's memory, used or not."""
    return int(_memory(index).total)


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t of nvml.h."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


_NOT_SAID = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE of nvml.h


class _Violation(ctypes.Structure):
    """nvmlViolationTime_t of nvml.h, in us and ns."""

    _fields_ = (("reference", ctypes.c_ulonglong), ("violated", ctypes.c_ulonglong))


def compute_pids(index: int) -> list[int]:
    """Processes that have a context on the GPU, as far as the driver tells this host."""
    return list(compute_memory(index))


def compute_memory(index: int) -> dict[int, int]:
    """Bytes of the GPU's memory by such a process; 0 where the driver does not say."""
    return _processes(index, "nvmlDeviceGetComputeRunningProcesses_v3")


def graphics_pids(index: int) -> list[int]:
    """Processes that draw with the GPU, such as a desktop's; as far as the driver tells."""
    return list(_processes(index, "nvmlDeviceGetGraphicsRunningProcesses_v3"))


def _processes(index: int, name: str) -> dict[int, int]:
    room = 128
    count = ctypes.c_uint(room)
    processes = (_Process * room)()
    _nvml()(name, _nvml().device(index), ctypes.byref(count), processes)
    found = ((int(process.pid), int(process.memory)) for process in processes[: count.value])
    return {pid: 0 if memory == _NOT_SAID else memory for pid, memory in found}


def energy_mj(index: int) -> int:
    """Millijoules that the GPU has used since the driver was loaded."""
    return _nvml().number("nvmlDeviceGetTotalEnergyConsumption", _nvml().device(index))


def uncorrected_errors(index: int) -> int:
    """Memory errors since the driver was loaded that its code could not correct."""
    uncorrected, volatile = ctypes.c_uint(1), ctypes.c_uint(0)
    device = _nvml().device(index)
    return _nvml().number("nvmlDeviceGetTotalEccErrors", device, uncorrected, volatile)


def remapped_rows(index: int) -> tuple[int, bool, bool]:
    """Rows remapped for uncorrectable errors, whether more wait for a reset, whether any failed."""
    corrected, uncorrected, pending, failed = (ctypes.c_uint(0) for _ in range(4))
    found = (corrected, uncorrected, pending, failed)
    name = "nvmlDeviceGetRemappedRows"
    _nvml()(name, _nvml().device(index), *(ctypes.byref(value) for value in found))
    return uncorrected.value, bool(pending.value), bool(failed.value)


def lowered_ns(index: int) -> dict[str, int]:
    """For how long, in ns since the driver was loaded, clocks were lowered, by reason.

    A reason is missing where the GPU does not count it.
    """
    found = {}
    for name, policy in _LOWERED_BY.items():
        time = _Violation()
        arguments = ctypes.c_uint(policy), ctypes.byref(time)
        with contextlib.suppress(NvmlError):
            _nvml()("nvmlDeviceGetViolationStatus", _nvml().device(index), *arguments)
            found[name] = int(time.violated)
    return found


def state(index: int) -> DeviceState:
    """Clocks in MHz, temperature in degrees Celsius, power in W, and why clocks are lowered."""
    nvml = _nvml()
    device = nvml.device(index)
    reasons = nvml.number("nvmlDeviceGetCurrentClocksThrottleReasons", device)
    sm, memory = ctypes.c_uint(_CLOCK_SM), ctypes.c_uint(_CLOCK_MEMORY)
    of_gpu = ctypes.c_uint(_TEMPERATURE_GPU)
    return DeviceState(
        sm_mhz=nvml.number("nvmlDeviceGetClockInfo", device, sm),
        memory_mhz=nvml.number("nvmlDeviceGetClockInfo", device, memory),
        temperature_c=nvml.number("nvmlDeviceGetTemperature", device, of_gpu),
        power_w=nvml.number("nvmlDeviceGetPowerUsage", device) / 1000,
        throttle_reasons=tuple(word for bit, word in _THROTTLE_REASONS.items() if reasons & bit),
    )
