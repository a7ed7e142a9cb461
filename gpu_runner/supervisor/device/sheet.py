"""The hardware sheet: what whoever writes a kernel for this device needs to know of it."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import Any

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.cpu import field_of
from gpu_runner.supervisor.device.device import PEAKS, DeviceError, device_name, driver_peak
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.nvml import NvmlError
from gpu_runner.supervisor.host.processors import measured_cpus

_CPUINFO = Path("/proc/cpuinfo")
_SYSTEM = Path("/sys/devices/system/cpu")
_FEATURES = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "bmi2", "avx512f", "avx512cd", "avx512bw"),
    *("avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni"),
    *("amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
    *("asimd", "asimdhp", "asimddp", "sve", "sve2", "bf16", "svebf16", "i8mm"),
)
"""Names of /proc/cpuinfo by which a kernel chooses its instructions."""

_KIB = 1024  # bytes
_SM = {
    (7, 0): (64, 96, 96, 2048),
    (7, 5): (64, 64, 64, 1024),
    (8, 0): (64, 164, 163, 2048),
    (8, 6): (128, 100, 99, 1536),
    (8, 9): (128, 100, 99, 1536),
    (9, 0): (128, 228, 227, 2048),
    (10, 0): (128, 228, 227, 2048),
    (10, 3): (128, 228, 227, 2048),
    (12, 0): (128, 100, 99, 1536),
}
"""By compute capability: cores, KiB of shared memory, KiB of it for a block, threads; of an SM.

Source: CUDA C++ Programming Guide, technical specifications for each compute capability.
"""


def sheet(config: SupervisorConfig) -> dict[str, Any]:
    """Facts of the device as JSON values; what nobody says of it is left out."""
    found = dict(_sheet(config.kind, config.index))
    found["call_timeout_s"] = config.call_timeout_s
    if config.kind is DeviceKind.CPU:
        found["processors"] = len(measured_cpus())
    return found


@functools.cache
def _sheet(kind: DeviceKind, index: int) -> dict[str, Any]:
    if kind is DeviceKind.CPU:
        return cpu_sheet(_read(_CPUINFO), measured_cpus()[0], _SYSTEM)
    with contextlib.suppress(NvmlError, DeviceError):
        return _gpu_sheet(index)
    return {}


def cpu_sheet(cpuinfo: str, cpu: int, system: Path) -> dict[str, Any]:
    """Facts of one processor: identity, features, clock in Hz, and caches with who shares them."""
    flags = set(field_of(cpuinfo, "flags").split()) | set(field_of(cpuinfo, "Features").split())
    found: dict[str, Any] = {"features": [name for name in _FEATURES if name in flags]}
    family, model = field_of(cpuinfo, "cpu family"), field_of(cpuinfo, "model")
    if family and model:  # in a virtual machine the name says less than these
        found["identity"] = f"{field_of(cpuinfo, 'vendor_id')} family {family} model {model}"
    with contextlib.suppress(ValueError):
        found["clock_hz"] = float(_read(system / f"cpu{cpu}/cpufreq/cpuinfo_max_freq")) * 1e3
        found["clock_is"] = "highest"
    if "clock_hz" not in found:
        with contextlib.suppress(ValueError):
            found["clock_hz"] = float(field_of(cpuinfo, "cpu MHz")) * 1e6
            found["clock_is"] = "now"
    found["caches"] = _caches(system / f"cpu{cpu}/cache")
    return found


def _caches(folder: Path) -> list[dict[str, Any]]:
    caches = []
    for each in sorted(folder.glob("index[0-9]*")):
        if _read(each / "type") == "Instruction":
            continue
        with contextlib.suppress(ValueError):
            caches.append(
                {
                    "level": int(_read(each / "level")),
                    "bytes": int(_read(each / "size").removesuffix("K")) * _KIB,
                    "line": int(_read(each / "coherency_line_size")),
                    "shared_by": _count(_read(each / "shared_cpu_list")),
                }
            )
    return caches


def _count(cpus: str) -> int:
    """How many processors a list such as 0-3,8 names; raises `ValueError` for another text."""
    ends = (part.split("-") for part in cpus.split(","))
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def _gpu_sheet(index: int) -> dict[str, Any]:
    capability = nvml.compute_capability(index)
    known = PEAKS.get(device_name(DeviceKind.CUDA, index))
    peak = known or driver_peak(index)
    found: dict[str, Any] = {
        "compute_capability": f"{capability[0]}.{capability[1]}",
        "clock_hz": nvml.sm_clock_mhz(index) * 1e6,
        "clock_is": "highest",
        "memory_bytes": nvml.memory_total(index),
        "bytes_per_s": peak.bytes_per_s,
        "flop_per_s": dict(peak.flops),
        "rates_are": "the maker's data sheet" if known else "what the driver says",
    }
    if known and known.cache_bytes:
        found["l2_bytes"] = known.cache_bytes
    if capability in _SM:
        cores, shared, of_block, threads = _SM[capability]
        found |= {
            "sms": nvml.cores(index) // cores,
            "shared_bytes_per_sm": shared * _KIB,
            "shared_bytes_per_block": of_block * _KIB,
            "registers_per_sm": 65536,
            "threads_per_sm": threads,
        }
    return found


def _read(path: Path) -> str:
    """The text of a file of the kernel's; empty where there is none."""
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""
