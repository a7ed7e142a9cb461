"""What a device is: its name, its theoretical peaks, and the lock that makes it exclusive."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.config import SupervisorConfig


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
"""By the name that nvidia-smi gives. A device that is not here has no floor."""


def query_gpu(index: int, fields: str) -> list[str]:
    """Values of nvidia-smi's `fields` for one GPU. Raises `DeviceError` where there is none."""
    command = ["nvidia-smi", f"--id={index}", f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeviceError(f"nvidia-smi does not run: {error}") from None
    if done.returncode != 0:
        raise DeviceError(f"no CUDA device {index}: {done.stdout.strip() or done.stderr.strip()}")
    return [value.strip() for value in done.stdout.strip().splitlines()[0].split(",")]


@functools.cache
def cuda_architecture(index: int) -> str:
    """Compile target of a GPU, such as sm_90."""
    capability = query_gpu(index, "compute_cap")[0]
    return f"sm_{capability.replace('.', '')}"


@functools.cache
def device_name(kind: DeviceKind, index: int) -> str:
    """The maker's name of the device."""
    if kind is DeviceKind.CUDA:
        return query_gpu(index, "name")[0]
    with contextlib.suppress(OSError):
        match = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        if match:
            return match[1].strip()
    return "unknown CPU"


def device_slug(kind: DeviceKind, index: int) -> str:
    """Name of the device's queue and board: `cpu`, or `nvidia-h200`."""
    if kind is DeviceKind.CPU:
        return "cpu"
    return re.sub(r"[^a-z0-9]+", "-", device_name(kind, index).lower()).strip("-")


def cuda_devices() -> list[int]:
    """Indices of the GPUs of this host; empty where there is none."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.split() if done.returncode == 0 else []
    return [int(line) for line in lines if line.isdigit()]


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
