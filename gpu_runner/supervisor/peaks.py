"""The peaks that a profile compares with: data sheets, the driver's figures, or a measurement."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor import nvml, toolchain
from gpu_runner.supervisor.build import NATIVE_FOLDER, Recipe, build_trusted
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.device import PEAKS, Peak, device_name
from gpu_runner.supervisor.environment import stack
from gpu_runner.supervisor.files import read_json, write_atomically
from gpu_runner.supervisor.jail import Jail, Limits
from gpu_runner.supervisor.process import ChildProcess
from gpu_runner.supervisor.session import RunnerUnfit

_PROBE_TIMEOUT_S = 60.0
_HERTZ_PER_MHZ = 1e6


@dataclass(frozen=True)
class KnownPeak:
    """A peak, and where it comes from, for a person."""

    peak: Peak
    source: str


def device_peak(config: SupervisorConfig) -> KnownPeak:
    """The peak of the configured device; hold the device, for a CPU's may be measured now.

    Raises `RunnerUnfit` if it cannot be measured, `NvmlError` if the driver does not say it.
    """
    if config.kind is DeviceKind.CPU:
        return KnownPeak(_measured(config), "measured on this host: a stream and an FMA loop")
    known = PEAKS.get(device_name(config.kind, config.index))
    if known is not None:
        return KnownPeak(known, "the maker's data sheet")
    return KnownPeak(_of_driver(config.index), "clocks, bus width and cores, as the driver says")


def _of_driver(index: int) -> Peak:
    """Double data rate memory; two operations a cycle and core in float32."""
    moved = 2 * nvml.memory_clock_mhz(index) * _HERTZ_PER_MHZ * nvml.memory_bus_bits(index) / 8
    rate = 2 * nvml.sm_clock_mhz(index) * _HERTZ_PER_MHZ * nvml.cores(index)
    return Peak(float(moved), {"float32": float(rate)})


def _measured(config: SupervisorConfig) -> Peak:
    source = (NATIVE_FOLDER / "peaks.cpp").read_text()
    key = hashlib.sha256(f"{stack(config)} {toolchain.machine()} {source}".encode()).hexdigest()
    path = config.cache_folder / "peaks" / f"{key}.json"
    if not path.exists():
        write_atomically(path, _measure(source, config))
    moved, rate = read_json(path)
    return Peak(moved, {"float32": rate, "float64": rate / 2})


def _measure(source: str, config: SupervisorConfig) -> list[float]:
    flags = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fopenmp")
    recipe = Recipe({"peaks.cpp": source}, "peaks.cpp", DeviceKind.CPU, flags)
    program = build_trusted(recipe, config)
    limits = Limits(cpu_s=3600, memory_bytes=config.memory_bytes, processes=config.processes)
    with ChildProcess(
        Jail(limits=limits, paths=[program]),
        [str(program)],
        jailed=not config.allow_unjailed,
        measured=True,
    ) as child:
        status = child.wait(_PROBE_TIMEOUT_S)
        words = child.output.split()
    if status != 0 or len(words) != 2:
        raise RunnerUnfit(f"the probe of this CPU's peaks failed: {child.output[:300]}")
    return [float(word) for word in words]
