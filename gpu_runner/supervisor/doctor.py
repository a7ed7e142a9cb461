"""Says what a host can do, what is missing, and what that means."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor import jail, toolchain
from gpu_runner.supervisor.anchor import probe_ncu
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.device import PEAKS, cuda_devices, device_name, device_slug
from gpu_runner.supervisor.session import RunnerUnfit
from gpu_runner.supervisor.toolchain import ToolchainError


def doctor() -> tuple[str, bool, dict[str, Any]]:
    """Text for a person, whether this host can evaluate at all, and the facts as JSON values."""
    facts: dict[str, Any] = {
        "jail": jail.probe() or "works",
        "g++": _version(DeviceKind.CPU),
        "nvcc": _version(DeviceKind.CUDA),
        "torch": _torch(),
        "headers": _headers(),
        "devices": [device_slug(DeviceKind.CPU, 0)],
        "cpu": device_name(DeviceKind.CPU, 0),
    }
    gpus = cuda_devices()
    facts["devices"] += [device_slug(DeviceKind.CUDA, index) for index in gpus]
    facts["ncu"] = _ncu(gpus, facts)
    fit = facts["jail"] == "works" and not facts["g++"].startswith("missing")
    fit = fit and not facts["torch"].startswith("missing")
    return "\n".join(_lines(facts, gpus)), fit, facts


def _lines(facts: dict[str, Any], gpus: list[int]) -> list[str]:
    lines = [
        _line("jail", facts["jail"] == "works", facts["jail"], "nothing is run without a jail"),
        _line("g++", _there(facts["g++"]), facts["g++"], "no C++ kernel can be built"),
        _line("torch", _there(facts["torch"]), facts["torch"], "no reference can be computed"),
        _line(
            "headers",
            _there(facts["headers"]),
            facts["headers"],
            "no torch extension and no compiled baseline can be built",
        ),
        _line("cpu", True, facts["cpu"], ""),
        _line("nvcc", _there(facts["nvcc"]), facts["nvcc"], "no CUDA kernel can be built"),
        _line("gpu", bool(gpus), f"{len(gpus)} found", "CUDA kernels cannot be run here"),
        _line("ncu", facts["ncu"] == "works", facts["ncu"], "profiles have no hardware counters"),
    ]
    for index in gpus:
        name = device_name(DeviceKind.CUDA, index)
        known = "peaks known" if name in PEAKS else "peaks unknown: no physical limit is shown"
        lines.append(f"       GPU {index}: {name} ({known})")
    return lines


def _line(name: str, ok: bool, found: str, meaning: str) -> str:  # noqa: FBT001
    mark = "ok" if ok else "--"
    return f"  {mark}  {name:<7} {found}" + ("" if ok or not meaning else f": {meaning}")


def _there(text: str) -> bool:
    return not text.startswith("missing")


def _version(kind: DeviceKind) -> str:
    return _or_missing(lambda: toolchain.compiler(kind).version)


def _ncu(gpus: list[int], facts: dict[str, Any]) -> str:
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


def _torch() -> str:
    return _or_missing(toolchain.torch_version)


def _headers() -> str:
    path = Path(sysconfig.get_path("include")) / "Python.h"
    return str(path) if path.exists() else "missing: Python.h (Debian: python3-dev)"


def _or_missing(find: Callable[[], str]) -> str:
    try:
        return find()
    except ToolchainError as error:
        return f"missing: {error}"
