"""What a result says of the host that it was measured on."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from gpu_runner.data.environment import Cache, Environment, Hardware
from gpu_runner.data.formats.kbench import LIBRARY, REFERENCE
from gpu_runner.data.formats.source import functions, parse_module
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.device.cpu import CPUINFO, SYSTEM, field_of, text_of
from gpu_runner.supervisor.device.device import (
    PEAKS,
    DeviceError,
    cuda_architecture,
    cuda_devices,
    device_name,
    driver_peak,
)
from gpu_runner.supervisor.device.statistics import ESTIMATORS
from gpu_runner.supervisor.host import cgroup, jail, nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.nvml import NvmlError
from gpu_runner.supervisor.host.processors import measured_cpus
from gpu_runner.supervisor.host.seccomp import filter_program

SETTINGS = "no TF32, no sums in 16 bits"
"""What `engine/torch_settings` asks of torch: a baseline measured under others is another one."""
_FEATURES = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "bmi2", "avx512f", "avx512cd", "avx512bw"),
    *("avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni"),
    *("amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
    *("asimd", "asimdhp", "asimddp", "sve", "sve2", "bf16", "svebf16", "i8mm"),
)
"""Names of /proc/cpuinfo by which a kernel chooses its instructions."""

_KIB = 1024  # bytes
SM = {
    (7, 0): (64, 96, 96, 2048),
    (7, 5): (64, 64, 64, 1024),
    (8, 0): (64, 164, 163, 2048),
    (8, 6): (128, 100, 99, 1536),
    (8, 7): (128, 164, 163, 1536),
    (8, 9): (128, 100, 99, 1536),
    (9, 0): (128, 228, 227, 2048),
    (10, 0): (128, 228, 227, 2048),
    (10, 3): (128, 228, 227, 2048),
    (12, 0): (128, 100, 99, 1536),
}
"""By compute capability: cores, KiB of shared memory, KiB of it for a block, threads; of an SM.

Source: CUDA C++ Programming Guide, technical specifications for each compute capability.
"""


def environment(config: SupervisorConfig) -> Environment:
    """Device, driver, compilers, torch, kernel and jail."""
    is_gpu = config.kind is DeviceKind.CUDA
    is_there = not is_gpu or bool(cuda_devices())  # where it is not, sources are only compiled
    cutlass = toolchain.cutlass() if is_gpu else None
    return Environment(
        device_name=device_name(config.kind, config.index) if is_there else "no GPU",
        device_kind=config.kind,
        kernel=platform.release(),
        cpus=len(os.sched_getaffinity(0)),
        measured_cpus=len(measured_cpus()),
        python=platform.python_version(),
        torch=toolchain.torch_version(),
        compiler=toolchain.compiler(config.kind).version,
        host_compiler=toolchain.compiler(DeviceKind.CPU).version,
        jail=jail_name(config),
        limits="none" if config.allow_unjailed else cgroup.limits_name(),
        system_calls=filter_name(config),
        tf32=False,
        estimator=str(ESTIMATORS[config.kind]),
        hardware=sheet(config),
        driver=nvml.driver_version() if is_gpu and is_there else "",
        architecture=cuda_architecture(config.index) if is_gpu else "",
        cutlass=cutlass.version if cutlass else "",
    )


def stack(config: SupervisorConfig) -> str:
    """What a baseline depends on besides its task: device, software, and our settings of it."""
    found = environment(config)
    names = ("device_name", "driver", "torch", "compiler", "host_compiler", "cpus", "measured_cpus")
    return "; ".join([*(str(getattr(found, name)) for name in names), SETTINGS])


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


def sheet(config: SupervisorConfig) -> Hardware:
    """Facts of the device; what nobody says of it is left out."""
    processors = len(measured_cpus()) if config.kind is DeviceKind.CPU else None
    found = _sheet(config.kind, config.index)
    return replace(found, call_timeout_s=config.call_timeout_s, processors=processors)


@functools.cache
def _sheet(kind: DeviceKind, index: int) -> Hardware:
    if kind is DeviceKind.CPU:
        return cpu_sheet(text_of(CPUINFO), measured_cpus()[0], SYSTEM)
    with contextlib.suppress(NvmlError, DeviceError):
        return _gpu_sheet(index)
    return Hardware()


def cpu_sheet(cpuinfo: str, cpu: int, system: Path) -> Hardware:
    """Facts of one processor: identity, features, clock in Hz, and caches with who shares them."""
    flags = set(field_of(cpuinfo, "flags").split()) | set(field_of(cpuinfo, "Features").split())
    family, model = field_of(cpuinfo, "cpu family"), field_of(cpuinfo, "model")
    identity = f"{field_of(cpuinfo, 'vendor_id')} family {family} model {model}"
    highest = _number(text_of(system / f"cpu{cpu}/cpufreq/cpuinfo_max_freq"), 1e3)
    clock_hz = highest or _number(field_of(cpuinfo, "cpu MHz"), 1e6)
    return Hardware(
        features=tuple(name for name in _FEATURES if name in flags),
        # in a virtual machine the name says less than these
        identity=identity if family and model else "",
        clock_hz=clock_hz,
        clock_is="highest" if highest else "now" if clock_hz else "",
        caches=tuple(_caches(system / f"cpu{cpu}/cache")),
    )


def _number(text: str, unit: float) -> float | None:
    with contextlib.suppress(ValueError):
        return float(text) * unit
    return None


def _caches(folder: Path) -> Iterator[Cache]:
    for each in sorted(folder.glob("index[0-9]*")):
        if text_of(each / "type") == "Instruction":
            continue
        with contextlib.suppress(ValueError):
            yield Cache(
                level=int(text_of(each / "level")),
                bytes=int(text_of(each / "size").removesuffix("K")) * _KIB,
                line=int(text_of(each / "coherency_line_size")),
                shared_by=_count(text_of(each / "shared_cpu_list")),
            )


def _count(cpus: str) -> int:
    """How many processors a list such as 0-3,8 names; raises `ValueError` for another text."""
    ends = (part.split("-") for part in cpus.split(","))
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def _gpu_sheet(index: int) -> Hardware:
    capability = nvml.compute_capability(index)
    known = PEAKS.get(device_name(DeviceKind.CUDA, index))
    peak = known or driver_peak(index)
    found = Hardware(
        compute_capability=f"{capability[0]}.{capability[1]}",
        clock_hz=nvml.sm_clock_mhz(index) * 1e6,
        clock_is="highest",
        memory_bytes=nvml.memory_total(index),
        bytes_per_s=peak.bytes_per_s,
        flop_per_s=dict(peak.flops),
        rates_are="the vendor's data sheet" if known else "what the driver says",
        l2_bytes=known.cache_bytes or None if known else None,
    )
    if capability not in SM:
        return found
    cores, shared, of_block, threads = SM[capability]
    return replace(
        found,
        sms=nvml.cores(index) // cores,
        shared_bytes_per_sm=shared * _KIB,
        shared_bytes_per_block=of_block * _KIB,
        registers_per_sm=65536,
        threads_per_sm=threads,
    )


def library_versions(task: Task) -> Mapping[str, str]:
    """By name of each: the packages that its function needs, such as "torch 2.11.0+cu130".

    Packages that aren't installed have no version.
    """
    if not task.library_baselines:
        return {}
    have = functions(parse_module(task.files[REFERENCE], REFERENCE))
    names = task.library_baselines
    return {name: ", ".join(_versions(have[f"{LIBRARY}{name}"])) for name in names}


def _versions(function: ast.FunctionDef) -> Iterator[str]:
    """Versions of what the function imports; of torch, where it imports nothing."""
    imported = {name.partition(".")[0] for name in _imports(function)} - {"torch"}
    if not imported:
        yield f"torch {toolchain.torch_version()}"
    packages = metadata.packages_distributions() if imported else {}
    for module in sorted(imported):
        package = next(iter(packages.get(module, ())), "")
        yield f"{package} {metadata.version(package)}" if package else f"{module}: not installed"


def _imports(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
