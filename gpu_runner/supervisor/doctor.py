"""Says what a host can do, what is missing, and what that means."""

from __future__ import annotations

import contextlib
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpu_runner.data.packages import PACKAGES
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.audit.required import audit_tools
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.device.device import (
    PEAKS,
    DeviceError,
    Peak,
    cuda_devices,
    device_name,
    device_slug,
)
from gpu_runner.supervisor.device.lock import exclusive
from gpu_runner.supervisor.device.toolchain import ToolchainError, python_packages
from gpu_runner.supervisor.host import foreign_memory, jail
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.runner.faults import RunnerUnfit
from gpu_runner.supervisor.tools.anchor import probe_ncu
from gpu_runner.supervisor.tools.calibrate import Calibration, calibrate, calibrated
from gpu_runner.supervisor.tools.peaks import KnownPeak, ceiling

_PATIENCE_S = 20.0  # chosen: a Python that imports next to nothing starts in a tenth of a second


def doctor(cache_folder: Path | None = None) -> tuple[str, bool, dict[str, object]]:
    """Text for a person, whether this host can evaluate at all, and the facts as JSON values.

    cache_folder: where calibrations are looked for; the default one if None.
    """
    facts: dict[str, Any] = {
        "jail": jail.probe() or "works",
        "g++": _version(DeviceKind.CPU),
        "nvcc": _version(DeviceKind.CUDA),
        "cutlass": _cutlass(),
        "torch": _torch(),
        "headers": _headers(),
        "packages": python_packages(),
        "devices": [device_slug(DeviceKind.CPU, 0)],
        "cpu": device_name(DeviceKind.CPU, 0),
    }
    facts["memory"] = _memory(facts["jail"])
    gpus = cuda_devices()
    facts["devices"] += [device_slug(DeviceKind.CUDA, index) for index in gpus]
    facts["ncu"] = _ncu(gpus, facts)
    facts["audits"] = _audits(gpus, facts["ncu"])
    facts["calibrated"] = _calibrated(gpus, cache_folder or default_cache_folder())
    fit = facts["jail"] == "works" and not facts["g++"].startswith("missing")
    fit = fit and not facts["torch"].startswith("missing")
    return "\n".join(_lines(facts, gpus)), fit, facts


def measure_peaks(config: SupervisorConfig) -> tuple[str, dict[str, Any]]:
    """Measure what a device reaches: a table for a person, and its figures as JSON values.

    Waits for the device. Raises `DeviceError` where it cannot be measured, with the reason, and
    `JailError` where there is no jail.
    """
    jail.require(allow_unjailed=config.allow_unjailed)
    try:
        with exclusive(config):
            found = calibrate(config)
    except (ToolchainError, RunnerUnfit) as error:
        raise DeviceError(str(error)) from None
    limit = ceiling(config)
    name = device_name(config.kind, config.index)
    peak = limit.peak if limit else Peak(0.0, {})
    rows = [
        *((f"memory, {n}", rate, peak.bytes_per_s, "B/s") for n, rate in found.bytes_per_s.items()),
        *(
            (_spoken(name), rate, _limit_of(name, peak, found), "FLOP/s")
            for name, rate in found.flops.items()
        ),
    ]
    facts = {
        "device": config.device,
        "name": name,
        "measured": {"bytes_per_s": dict(found.bytes_per_s), "flop_per_s": dict(found.flops)},
        "limit": _limit_facts(limit),
    }
    return "\n".join([f"{config.device}: {name}", *map(_row, rows), *_source_of(limit)]), facts


def _spoken(name: str) -> str:
    dtype = name.removesuffix("_tensor")
    return f"{dtype}, tensor cores" if dtype != name else dtype


def _limit_of(name: str, peak: Peak, found: Calibration) -> float:
    """The limit of a measured rate; 0 for TF32, and beside tensor cores, whose limit it is."""
    if f"{name}_tensor" in found.flops:
        return 0.0
    return peak.flops.get(name.removesuffix("_tensor"), 0.0)


def _limit_facts(limit: KnownPeak | None) -> dict[str, object]:
    if limit is None:
        return {}
    peak = limit.peak
    return {"bytes_per_s": peak.bytes_per_s, "flop_per_s": peak.flops, "source": limit.source}


def _row(row: tuple[str, float, float, str]) -> str:
    name, measured, limit, unit = row
    words = f"  {name:<24} {_quantity(measured, unit):>16}"
    if limit <= 0 or name == "memory, cache":
        return words
    return f"{words}  of {_quantity(limit, unit):>14}  {measured / limit:4.0%}"


def _quantity(value: float, unit: str) -> str:
    scale, prefix = (1e12, "T") if value >= 1e12 else (1e9, "G")
    return f"{value / scale:.4g} {prefix}{unit}"


def _source_of(limit: KnownPeak | None) -> list[str]:
    return [f"  limits: {limit.source}"] if limit else ["  no limit of this device is known"]


def _lines(facts: dict[str, Any], gpus: list[int]) -> list[str]:
    lines = [
        _line("jail", facts["jail"] == "works", facts["jail"], "nothing is run without a jail"),
        _line(
            "memory", facts["memory"] == "works", facts["memory"], "no Python kernel runs on a CPU"
        ),
        _line("g++", _there(facts["g++"]), facts["g++"], "no C++ kernel can be built"),
        _line("torch", _there(facts["torch"]), facts["torch"], "no reference can be computed"),
        _line(
            "headers",
            _there(facts["headers"]),
            facts["headers"],
            "no torch extension and no compiled baseline can be built",
        ),
        _line("python", True, _packages(facts["packages"]), ""),
        _line("cpu", True, facts["cpu"], ""),
        _line("nvcc", _there(facts["nvcc"]), facts["nvcc"], "no CUDA kernel can be built"),
        _line("cutlass", _there(facts["cutlass"]), facts["cutlass"], "kernels cannot include it"),
        _line("gpu", bool(gpus), f"{len(gpus)} found", "CUDA kernels cannot be run here"),
        _line("ncu", facts["ncu"] == "works", facts["ncu"], "profiles have no hardware counters"),
    ]
    unverified = "audits can't run these checks, and the device's boards stay unverified"
    for device, found in facts["audits"].items():
        words = f"{device}: {found}"
        lines.append(_line("audits", found == "complete", words, unverified))
    measured = set(facts["devices"]) <= set(facts["calibrated"])
    found = ", ".join(facts["calibrated"]) or "none"
    meaning = "doctor --calibrate measures what a device reaches"
    lines.append(_line("peaks", measured, f"measured for: {found}", meaning))
    for index in gpus:
        name = device_name(DeviceKind.CUDA, index)
        known = "peaks from the data sheet" if name in PEAKS else "peaks from the driver's figures"
        lines.append(f"       GPU {index}: {name} ({known})")
    return lines


def _line(name: str, ok: bool, found: str, meaning: str) -> str:  # noqa: FBT001
    mark = "ok" if ok else "--"
    return f"  {mark}  {name:<7} {found}" + ("" if ok or not meaning else f": {meaning}")


def _there(text: str) -> bool:
    return not text.startswith("missing")


def _version(kind: DeviceKind) -> str:
    return _or_missing(lambda: toolchain.compiler(kind).version)


def _memory(jailed: str) -> str:
    """Whether the supervisor may read outputs in the processes that it starts."""
    if jailed != "works":
        return "not tried: no jail"
    try:
        return foreign_memory.probe() or "works"
    except (OSError, jail.JailError) as error:
        return str(error)


def _ncu(gpus: list[int], facts: dict[str, object]) -> str:
    """Tried for real, on the first GPU: drivers often refuse counters to ordinary users."""
    if not gpus:
        return "not tried: no GPU"
    if facts["jail"] != "works":
        return "not tried: no jail"
    config = SupervisorConfig(
        kind=DeviceKind.CUDA, index=gpus[0], device=device_slug(DeviceKind.CUDA, gpus[0])
    )
    try:
        return probe_ncu(config) or "works"
    except (ToolchainError, RunnerUnfit) as error:
        return f"not tried: {error}".splitlines()[0]


def _audits(gpus: list[int], ncu: str) -> dict[str, str]:
    """Of each device: `complete`, or which of the tools that its audits need are not to be had."""
    lacking = {"cpu": _lacking_tools(DeviceKind.CPU)}
    for index in gpus:
        found = _lacking_tools(DeviceKind.CUDA)
        if ncu != "works" and not any(words.startswith("ncu") for words in found):
            found.append(f"ncu ({ncu})")
        lacking[device_slug(DeviceKind.CUDA, index)] = found
    return {
        slug: f"incomplete without {' and '.join(found)}" if found else "complete"
        for slug, found in lacking.items()
    }


def _lacking_tools(kind: DeviceKind) -> list[str]:
    return [
        f"{name} ({where.removeprefix('missing: ')})"
        for name, where in audit_tools(kind).items()
        if not _there(where)
    ]


def _calibrated(gpus: list[int], cache_folder: Path) -> list[str]:
    """The slugs of the devices whose peaks are known from a measurement under this software."""
    found = []
    for kind, index in ((DeviceKind.CPU, 0), *((DeviceKind.CUDA, gpu) for gpu in gpus)):
        slug = device_slug(kind, index)
        config = SupervisorConfig(kind=kind, index=index, device=slug, cache_folder=cache_folder)
        with contextlib.suppress(ToolchainError):  # said in a line of its own
            if calibrated(config) is not None:
                found.append(slug)
    return found


def _torch() -> str:
    """Its version, if a jailed Python finds it as this one does."""
    found = _or_missing(toolchain.torch_version)
    if found.startswith("missing") or jail.probe() or _is_in_jails("torch"):
        return found
    return f"missing: it is in {toolchain.torch_folder()}, which no jail can see"


def _is_in_jails(package: str) -> bool:
    look = f"import importlib.util as found, sys; sys.exit(not found.find_spec({package!r}))"
    made = jail.Jail(
        limits=jail.Limits(cpu_s=10, memory_bytes=1 << 30, processes=64),
        paths=jail.python_paths(),
        environment=jail.python_environment(),
    )
    with ChildProcess(made, [sys.executable, "-c", look], jailed=True) as child:
        return child.wait(_PATIENCE_S) == 0


def _cutlass() -> str:
    found = toolchain.cutlass()
    return f"{found.version}, with CuTe" if found else "missing: nvidia-cutlass"


def _packages(found: Mapping[str, str]) -> str:
    """For kernels in Python: what there is, and what there is not."""
    have = ", ".join(f"{name} {version}" for name, version in found.items())
    lacking = ", ".join(name for name in PACKAGES if name not in found)
    return f"{have or 'none'}; not installed: {lacking}" if lacking else have


def _headers() -> str:
    path = Path(sysconfig.get_path("include")) / "Python.h"
    return str(path) if path.exists() else "missing: Python.h (Debian: python3-dev)"


def _or_missing(find: Callable[[], str]) -> str:
    try:
        return find()
    except ToolchainError as error:
        return f"missing: {error}"
