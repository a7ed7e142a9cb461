"""What a device is: its name, its theoretical peaks, and the lock that makes it exclusive."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor import nvml
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.nvml import NvmlError


class DeviceError(Exception):
    """The device is not there or does not become free; the message says which and why."""


@dataclass(frozen=True)
class Peak:
    """Theoretical limits by the maker's data sheet: bytes/s, and FLOP/s per dtype.

    float32 is the rate without tensor cores, because tasks in float32 must be computed in it.
    """

    bytes_per_s: float
    flops: dict[str, float]


PEAKS = {
    "NVIDIA H200": Peak(4.8e12, {"float32": 66.9e12, "bfloat16": 989.5e12, "float16": 989.5e12}),
    "NVIDIA H100 80GB HBM3": Peak(
        3.35e12, {"float32": 66.9e12, "bfloat16": 989.5e12, "float16": 989.5e12}
    ),
    "NVIDIA A100-SXM4-80GB": Peak(
        2.04e12, {"float32": 19.5e12, "bfloat16": 312e12, "float16": 312e12}
    ),
}
"""By the name that the driver gives. A device that is not here has no floor."""


def cuda_architecture(index: int) -> str:
    """Compile target of a GPU, such as sm_90. Raises `DeviceError` where there is none."""
    try:
        major, minor = nvml.compute_capability(index)
    except NvmlError as error:
        raise DeviceError(f"no CUDA device {index}: {error}") from None
    return f"sm_{major}{minor}"


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
    with contextlib.suppress(OSError):
        match = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        if match:
            return match[1].strip()
    return "unknown CPU"


def generous_peak(kind: DeviceKind, index: int) -> Peak | None:
    """Limits that no device of this kind can exceed; None for a GPU that is not in `PEAKS`.

    A CPU gets 1 TB/s and 0.5 TFLOP/s a core: more than any has from memory, or from its units.
    """
    if kind is DeviceKind.CUDA:
        return PEAKS.get(device_name(kind, index))
    cores = os.cpu_count() or 1
    rates = ("float32", "float16", "bfloat16", "float64")
    return Peak(1e12, dict.fromkeys(rates, cores * 0.5e12))


def device_slug(kind: DeviceKind, index: int) -> str:
    """Name of the device's queue and board: `cpu`, or `nvidia-h200`."""
    if kind is DeviceKind.CPU:
        return "cpu"
    return re.sub(r"[^a-z0-9]+", "-", device_name(kind, index).lower()).strip("-")


def cuda_devices() -> list[int]:
    """Indices of the GPUs of this host; empty where there is none."""
    return list(range(nvml.device_count()))


@contextlib.contextmanager
def exclusive(config: SupervisorConfig) -> Iterator[None]:
    """Hold the device: one measurement at a time. The kernel frees it if this process dies."""
    folder = config.cache_folder / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{config.kind}-{config.index}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        deadline = time.monotonic() + config.device_timeout_s
        while not _locked(descriptor):
            if time.monotonic() > deadline:
                raise DeviceError(f"{config.device} was not free in {config.device_timeout_s:g} s")
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
