"""What a device is: its name, and its theoretical peaks."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass

from gpu_runner.data import gpus
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device import cpu, toolchain
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.nvml import NvmlError


class DeviceError(Exception):
    """The device is not there or does not become free; the message says which and why."""


@dataclass(frozen=True)
class Peak:
    """Theoretical limits: bytes/s from memory, and FLOP/s per dtype.

    float32 is the rate without tensor cores, because tasks in float32 must be computed in it;
    float64 the rate with them, where they have it. cache_bytes: of the last cache before memory.
    """

    bytes_per_s: float
    flops: dict[str, float]
    cache_bytes: float = 0.0


def _sheet(
    moved: float,
    cache_mb: float,
    float32: float,
    float64: float,
    sixteen: float,
    eight: tuple[str, ...] = ("int8", "float8_e4m3fn", "float8_e5m2"),
) -> Peak:
    """Figures of a data sheet in GB/s, MB and TFLOP/s, dense; the last of both 16-bit dtypes.

    eight: what tensor cores multiply at twice that rate.
    """
    rates = {
        "float32": float32 * 1e12,
        "float64": float64 * 1e12,
        "bfloat16": sixteen * 1e12,
        "float16": sixteen * 1e12,
        **dict.fromkeys(eight, 2 * sixteen * 1e12),
    }
    return Peak(moved * 1e9, rates, cache_mb * 1e6)


PEAKS = {
    "NVIDIA B200": _sheet(8000, 126, 80, 40, 2250),
    "NVIDIA H200": _sheet(4800, 60, 66.9, 66.9, 989.5),
    "NVIDIA H200 NVL": _sheet(4800, 60, 60, 60, 835.5),
    "NVIDIA H100 80GB HBM3": _sheet(3350, 50, 66.9, 66.9, 989.5),
    "NVIDIA H100 PCIe": _sheet(2000, 50, 51.2, 51.2, 756.5),
    "NVIDIA H100 NVL": _sheet(3900, 50, 60, 60, 835.5),
    "NVIDIA A100-SXM4-80GB": _sheet(2040, 40, 19.5, 19.5, 312, ("int8",)),
    "NVIDIA A100-SXM4-40GB": _sheet(1555, 40, 19.5, 19.5, 312, ("int8",)),
    "NVIDIA A100 80GB PCIe": _sheet(1935, 40, 19.5, 19.5, 312, ("int8",)),
    "NVIDIA A100-PCIE-40GB": _sheet(1555, 40, 19.5, 19.5, 312, ("int8",)),
    "NVIDIA L40S": _sheet(864, 96, 91.6, 1.43, 362),
    "NVIDIA L4": _sheet(300, 48, 30.3, 0.49, 121),
    "NVIDIA GeForce RTX 4090": _sheet(1008, 72, 82.6, 1.29, 165.2),
    "Tesla V100-SXM2-16GB": _sheet(900, 6, 15.7, 7.8, 125, ()),
    "Tesla V100-SXM2-32GB": _sheet(900, 6, 15.7, 7.8, 125, ()),
    "Tesla T4": _sheet(320, 4, 8.1, 0.25, 65, ("int8",)),
}
"""Data sheets, by the name that the driver gives."""

_DEFAULT_CACHE_BYTES = 128e6  # of a GPU that is not in `PEAKS`: as much as the largest has
_HERTZ_PER_MHZ = 1e6  # exact
_SIXTEEN_BIT_FLOP = {
    (7, 0): 16, (7, 2): 16, (7, 5): 16, (8, 0): 32, (8, 6): 8, (8, 7): 16, (8, 9): 8, (9, 0): 32,
    (10, 0): 64, (10, 3): 64, (12, 0): 8, (12, 1): 8,
}  # fmt: skip
"""Dense FLOP a cycle and core of tensor cores in float16, by compute capability."""
_EIGHT_BIT = {"int8": (7, 5), "float8_e4m3fn": (8, 9), "float8_e5m2": (8, 9)}
"""Dtypes that tensor cores multiply at twice that rate, and from which compute capability on."""
_FLOAT64_FLOP = {(6, 0): 1.0, (7, 0): 1.0, (8, 0): 2.0, (9, 0): 2.0, (10, 0): 1.0, (10, 3): 1.0}
"""The same in float64, with tensor cores where they have it."""
_CPU_BYTES_PER_S = 1e12  # chosen: more than any memory moves
_WITHOUT_GPU = (9, 0)  # chosen: what most GPU hosts have; such a host compiles all the same
_LITTLE_FLOAT64_FLOP = 1 / 16  # of GPUs that are not made for it: never more than this


@functools.cache
def driver_peak(index: int) -> Peak:
    """A GPU's limits by its highest clocks, bus width and cores. Raises `NvmlError`.

    Memory with double data rate; two operations a cycle and core in float32. Asked once: the driver
    takes a third of a second to answer on some hosts.
    """
    capability = nvml.compute_capability(index)
    moved = 2 * nvml.memory_clock_mhz(index) * _HERTZ_PER_MHZ * nvml.memory_bus_bits(index) / 8
    cycles = nvml.sm_clock_mhz(index) * _HERTZ_PER_MHZ * nvml.cores(index)
    rates = {"float32": 2 * cycles}
    rates["float64"] = _FLOAT64_FLOP.get(capability, _LITTLE_FLOAT64_FLOP) * cycles
    sixteen = _SIXTEEN_BIT_FLOP.get(capability)
    if sixteen is not None:
        rates["float16"] = rates["bfloat16"] = sixteen * cycles
        rates |= {d: 2 * sixteen * cycles for d, since in _EIGHT_BIT.items() if capability >= since}
    return Peak(float(moved), rates, _DEFAULT_CACHE_BYTES)


def higher(one: Peak, other: Peak) -> Peak:
    """The higher of each rate; the cache is the first one's, if it has any."""
    dtypes = dict.fromkeys((*one.flops, *other.flops))
    rates = {d: max(one.flops.get(d, 0.0), other.flops.get(d, 0.0)) for d in dtypes}
    moved = max(one.bytes_per_s, other.bytes_per_s)
    return Peak(moved, rates, one.cache_bytes or other.cache_bytes)


def cuda_architecture(index: int) -> str:
    """Compile target of a GPU, such as sm_90a; that of an H100 on a host that has no GPU.

    Raises `DeviceError` where this one is not there, `ToolchainError` where there is no nvcc.
    """
    try:
        capability = nvml.compute_capability(index)
    except NvmlError as error:
        if cuda_devices():
            raise DeviceError(f"no CUDA device {index}: {error}") from None
        capability = _WITHOUT_GPU
    return toolchain.architecture(capability)


def architecture(kind: DeviceKind, index: int) -> str:
    """What a device's kernels are built for: sm_90a, or x86_64-znver4. Raises as above."""
    return cuda_architecture(index) if kind is DeviceKind.CUDA else toolchain.machine()


def device_name(kind: DeviceKind, index: int) -> str:
    """The maker's name of the device. Raises `DeviceError` where there is none."""
    if kind is DeviceKind.CPU:
        return _cpu_name()
    try:
        return nvml.name(index)
    except NvmlError as error:
        raise DeviceError(f"no CUDA device {index}: {error}") from None


@functools.cache
def _cpu_name() -> str:
    return cpu.field_of(cpu.text_of(cpu.CPUINFO), "model name") or "unknown CPU"


def generous_peak(kind: DeviceKind, index: int) -> Peak | None:
    """Limits that no device of this kind can exceed; None for a GPU that nothing is known of.

    A GPU's clocks may be higher than its data sheet says, so the higher of it and the driver's
    figures counts. A CPU gets 1 TB/s and 0.5 TFLOP/s a core, 8 in 16 bits: more than any has.
    """
    if kind is DeviceKind.CPU:
        count = os.cpu_count() or 1
        rates = {"float32": 0.5e12, "float64": 0.5e12, "float16": 8e12, "bfloat16": 8e12}
        flops = {dtype: count * rate for dtype, rate in rates.items()}
        return Peak(_CPU_BYTES_PER_S, flops, cpu.cache_bytes())
    sheet = PEAKS.get(device_name(kind, index))
    try:
        driver = driver_peak(index)
    except NvmlError:
        return sheet
    return higher(sheet, driver) if sheet else driver


def device_slug(kind: DeviceKind, index: int) -> str:
    """Name of the device's queue and board: `cpu`, or `nvidia-h200`."""
    if kind is DeviceKind.CPU:
        return "cpu"
    return re.sub(r"[^a-z0-9]+", "-", device_name(kind, index).lower()).strip("-")


def cuda_devices() -> list[int]:
    """Indices of the GPUs of this host that may be used; empty if there is none."""
    uuids = [_uuid(index) for index in range(nvml.device_count())]
    return gpus.visible(uuids, os.environ.get(gpus.VARIABLE))


def _uuid(index: int) -> str:
    try:
        return nvml.uuid(index)
    except NvmlError:  # a broken one, which `doctor` must be able to tell
        return ""


def first_gpu() -> int:
    """Index of the GPU that is used if none is named; 0 if there is none."""
    return next(iter(cuda_devices()), 0)
