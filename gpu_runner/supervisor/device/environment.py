"""What a result says of the host that it was measured on."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from typing import Any

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.device.device import cuda_architecture, device_name
from gpu_runner.supervisor.device.sheet import sheet
from gpu_runner.supervisor.device.statistics import ESTIMATORS
from gpu_runner.supervisor.host import cgroup, jail, nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.nvml import NvmlError
from gpu_runner.supervisor.host.processors import measured_cpus
from gpu_runner.supervisor.host.seccomp import filter_program


def environment(config: SupervisorConfig) -> dict[str, Any]:
    """Device, driver, compilers, torch, kernel and jail, as JSON values."""
    found: dict[str, Any] = {
        "device_name": device_name(config.kind, config.index),
        "device_kind": config.kind.value,
        "kernel": platform.release(),
        "cpus": len(os.sched_getaffinity(0)),
        "measured_cpus": len(measured_cpus()),
        "python": platform.python_version(),
        "torch": toolchain.torch_version(),
        "compiler": toolchain.compiler(config.kind).version,
        "host_compiler": toolchain.compiler(DeviceKind.CPU).version,
        "jail": jail_name(config),
        "limits": "none" if config.allow_unjailed else cgroup.limits_name(),
        "system_calls": filter_name(config),
        "tf32": False,
        "estimator": str(ESTIMATORS[config.kind]),
        "hardware": sheet(config),
    }
    if config.kind is DeviceKind.CUDA:
        found["driver"] = nvml.driver_version()
        found["architecture"] = cuda_architecture(config.index)
        if cutlass := toolchain.cutlass():
            found["cutlass"] = cutlass.version
    return found


SETTINGS = "no TF32, no sums in 16 bits"
"""What `engine/torch_settings` asks of torch: a baseline measured under others is another one."""


def stack(config: SupervisorConfig) -> str:
    """What a baseline depends on besides its task: device, software, and our settings of it."""
    found = environment(config)
    names = ("device_name", "driver", "torch", "compiler", "host_compiler", "cpus", "measured_cpus")
    return "; ".join([*(str(found.get(name, "")) for name in names), SETTINGS])


def clocks(config: SupervisorConfig) -> dict[str, Any]:
    """Clocks, temperature, power and throttle reasons of a GPU now; empty for a CPU."""
    if config.kind is not DeviceKind.CUDA:
        return {}
    try:
        return nvml.state(config.index)
    except NvmlError as error:
        return {"unknown": str(error)}


def filter_name(config: SupervisorConfig) -> str:
    """Whether a jail's system calls are filtered."""
    if config.allow_unjailed:
        return "not filtered"
    return "filtered" if filter_program() else f"not filtered on {platform.machine()}"


def jail_name(config: SupervisorConfig) -> str:
    """The jail that evaluations run in, or why there is none."""
    if config.allow_unjailed:
        return "none: this runner was started without a jail"
    return _bubblewrap_version()


@functools.cache
def _bubblewrap_version() -> str:
    reason = jail.probe()
    if reason:
        return f"none: {reason}"
    done = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip()
