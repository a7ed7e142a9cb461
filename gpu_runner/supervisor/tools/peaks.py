"""What a device can reach: by its maker, by its driver, or as it was measured here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_runner.data.environment import Peaks, Rates
from gpu_runner.data.evaluation import WorkloadResult
from gpu_runner.data.floor import CPU_HEADROOM, CPU_LEAST_BYTES_PER_S
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device import cpu
from gpu_runner.supervisor.device.device import (
    PEAKS,
    DeviceError,
    Peak,
    device_name,
    driver_peak,
    generous_peak,
)
from gpu_runner.supervisor.device.floor import fraction
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.nvml import NvmlError
from gpu_runner.supervisor.tools.calibrate import calibrate, calibrate_again, calibrated


@dataclass(frozen=True)
class KnownPeak:
    """A peak, and where it comes from, for a person."""

    peak: Peak
    source: str


def device_peak(config: SupervisorConfig, moved_bytes_per_s: float = 0.0) -> KnownPeak:
    """The peak that a profile compares with; hold the device, for a CPU's may be measured now.

    moved_bytes_per_s: what a kernel has reached. A CPU's peak below that is measured again. Raises
    `RunnerUnfit` if it cannot be measured, `NvmlError` if the driver does not say it.
    """
    if config.kind is DeviceKind.CPU:
        found = calibrated(config) or calibrate(config)
        if moved_bytes_per_s > found.peak().bytes_per_s:
            found = calibrate_again(config, found)
        return KnownPeak(
            found.peak(), "measured on this host with streams and loops of multiply-adds"
        )
    known = PEAKS.get(device_name(config.kind, config.index))
    if known is not None:
        return KnownPeak(known, "the vendor's data sheet")
    return KnownPeak(driver_peak(config.index), "clocks, bus width and cores, from the driver")


def theoretical(config: SupervisorConfig) -> KnownPeak | None:
    """The physical limit that a score is a fraction of; None where nobody says it.

    A CPU has none: nothing on a host tells its memory's bandwidth.
    """
    if config.kind is DeviceKind.CPU:
        return None
    try:
        return device_peak(config)
    except (DeviceError, NvmlError):
        return None


def measured_or_theoretical(config: SupervisorConfig) -> KnownPeak | None:
    """What was measured here, else the physical limit; None where neither is known.

    Dtypes of eight bits are not measured: of them the physical limit stays.
    """
    found, limit = calibrated(config), theoretical(config)
    if found is None:
        return limit
    peak = found.peak()
    rates = {**limit.peak.flops, **peak.flops} if limit else peak.flops
    whole = Peak(peak.bytes_per_s, rates, peak.cache_bytes)
    return KnownPeak(whole, "measured on this host by doctor --calibrate")


def ceiling(config: SupervisorConfig) -> KnownPeak | None:
    """Rates that no honest kernel exceeds; None for a GPU of which nothing is known."""
    generous = generous_peak(config.kind, config.index)
    if generous is None:
        return None
    if config.kind is DeviceKind.CUDA:
        return KnownPeak(generous, "the higher of the vendor's data sheet and the driver's figures")
    cores, measured = cpu.cores(), calibrated(config)
    clock = "its highest clock" if cores.clock_hz < cpu.UNKNOWN_CLOCK_HZ else "6.5 GHz"
    source = f"{cores.count} cores at {clock} with {cores.instructions}; memory: "
    if measured is None:
        peak = Peak(generous.bytes_per_s, cores.flops, generous.cache_bytes)
        return KnownPeak(peak, source + "not measured, so set higher than any CPU's")
    moved = max(CPU_LEAST_BYTES_PER_S, CPU_HEADROOM * measured.peak().bytes_per_s)
    peak = Peak(min(generous.bytes_per_s, moved), cores.flops, generous.cache_bytes)
    words = f"{CPU_HEADROOM:g} times what was measured, and at least 100 GB/s"
    return KnownPeak(peak, source + words)


def facts(config: SupervisorConfig, dtype: str, workloads: Sequence[WorkloadResult]) -> Peaks:
    """What a result says of its limits; `note`: why there is none, where there is none."""
    limit, found = theoretical(config), calibrated(config)
    words = "measured on this host by doctor --calibrate"
    measured = KnownPeak(found.peak(), words) if found else None
    note = "" if limit else "no theoretical limit of this device is known"
    if all(workload.bytes is None for workload in workloads):
        note = "the task has no work formula, so no physical limit is known"
    return Peaks(
        theoretical=_described(limit, dtype, workloads) if limit else None,
        measured=_described(measured, dtype, workloads) if measured else None,
        note=note,
    )


def _described(known: KnownPeak, dtype: str, workloads: Sequence[WorkloadResult]) -> Rates:
    peak = known.peak
    return Rates(
        bytes_per_s=peak.bytes_per_s,
        flop_per_s=peak.flops.get(dtype),
        source=known.source,
        fraction=fraction(workloads, peak, dtype),
    )
