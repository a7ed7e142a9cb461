"""What a device can reach: of CPUs from what the kernel says, of all by a probe in the jail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device import cpu, device
from gpu_runner.supervisor.device.device import PEAKS, Peak, generous_peak
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.nvml import NvmlError
from gpu_runner.supervisor.runner.faults import RunnerUnfit
from gpu_runner.supervisor.tools import calibrate, peaks
from gpu_runner.supervisor.tools.calibrate import Calibration

MEASURED = Calibration(
    bytes_per_s={"read": 2e10, "copy": 1.5e10, "cache": 1e11},
    flops={"float32": 1e11, "float64": 5e10, "float64_tensor": 7e10, "tf32_tensor": 9e12},
)


@pytest.fixture
def config(tmp_path: Path) -> SupervisorConfig:
    return SupervisorConfig(cache_folder=tmp_path)


def block(core: int, flags: str, vendor: str = "GenuineIntel", family: int = 6) -> str:
    return (
        f"processor : {core}\nvendor_id : {vendor}\ncpu family : {family}\n"
        f"physical id : 0\ncore id : {core // 2}\nflags : {flags}\n"
    )


@pytest.mark.parametrize(
    ("flags", "vendor", "family", "float32", "bfloat16"),
    [
        ("sse2 avx fma avx512f", "GenuineIntel", 6, 64, 64),
        # Zen 4
        ("sse2 avx fma avx512f avx512_bf16", "AuthenticAMD", 26, 64, 128),  # Zen 5
        ("sse2 avx fma avx512f amx_bf16", "GenuineIntel", 6, 64, 1024),
        ("sse2 avx fma", "GenuineIntel", 6, 32, 32),
        ("", "", 0, 64, 64),
    ],
)
def test_a_cpus_rate_follows_from_its_instructions(
    flags: str, vendor: str, family: int, float32: float, bfloat16: float
) -> None:
    text = "\n".join(block(core, flags, vendor, family) for core in range(4))
    found = cpu.parse(text, 4, 3e9)
    assert found.count == 2  # each core has two threads
    assert found.flops["float32"] == pytest.approx(2 * 3e9 * float32)
    assert found.flops["float64"] == pytest.approx(2 * 3e9 * float32 / 2)
    assert found.flops["bfloat16"] == pytest.approx(2 * 3e9 * bfloat16)


def test_the_probes_words_become_rates_and_nonsense_is_refused() -> None:
    text = "read_bytes_per_s 2e10\ncopy_bytes_per_s 1.5e10\ncache_bytes_per_s 1e11\n"
    rates = "float32_flop_per_s 1e11\nfloat64_flop_per_s 5e10\nfloat64_tensor_flop_per_s 7e10\n"
    found = calibrate.parse(f"a word\n{text}{rates}")
    assert found.bytes_per_s == MEASURED.bytes_per_s
    assert found.peak() == Peak(2e10, {"float32": 1e11, "float64": 7e10})
    for bad in (text, rates, text + rates.replace("1e11", "inf"), text.replace("2e10", "0"), ""):
        with pytest.raises(RunnerUnfit, match="peaks"):
            calibrate.parse(bad)


def test_a_calibration_bounds_the_memory_of_a_cpu(config: SupervisorConfig) -> None:
    before = peaks.ceiling(config)
    assert before is not None
    assert before.peak.bytes_per_s == 1e12
    assert "not measured" in before.source
    assert calibrate.calibrated(config) is None
    calibrate.store(config, MEASURED)
    assert calibrate.calibrated(config) == MEASURED
    (path,) = (config.cache_folder / "peaks").iterdir()
    path.write_text('{"bytes_per_s": 1}')
    assert calibrate.calibrated(config) is None  # what is spoilt is measured again
    calibrate.store(config, MEASURED)
    after = peaks.ceiling(config)
    assert after is not None
    assert after.peak.bytes_per_s == 1e11  # it may have been a busy moment
    assert after.peak.flops == cpu.cores().flops
    assert "4 times what was measured" in after.source
    generous = generous_peak(DeviceKind.CPU, 0)
    assert generous is not None
    assert generous.bytes_per_s == 1e12  # a measurement never accuses
    assert peaks.device_peak(config).peak.bytes_per_s == 2e10
    assert peaks.theoretical(config) is None
    calibrate.store(config, replace(MEASURED, bytes_per_s={"read": 5e10, "copy": 6e10}))
    fast = peaks.ceiling(config)
    assert fast is not None
    assert fast.peak.bytes_per_s == pytest.approx(2.4e11)


def probe_of(monkeypatch: pytest.MonkeyPatch, *runs: tuple[float, float]) -> list[str]:
    """A probe whose runs measure so many GB/s by all cores and by one; returns what is left."""
    rates = "float32_flop_per_s 1e11\nfloat64_flop_per_s 5e10\n"
    texts = [
        f"read_bytes_per_s {every}e9\ncopy_bytes_per_s 1e9\none_core_bytes_per_s {one}e9\n{rates}"
        for every, one in runs
    ]
    monkeypatch.setattr(calibrate, "_run", lambda config: texts.pop(0))
    return texts


def test_peaks_below_those_of_one_core_are_measured_again_and_the_best_counts(
    config: SupervisorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = probe_of(monkeypatch, (33, 40), (52, 39), (99, 1))
    found = calibrate.calibrate(config)
    assert (found.peak().bytes_per_s, found.tries, len(left)) == (5.2e10, 2, 1)
    assert calibrate.calibrated(config) == found
    left = probe_of(monkeypatch, *[(33, 40)] * 9)
    found = calibrate.calibrate(config)
    assert (found.peak().bytes_per_s, found.tries) == (4e10, calibrate.MOST_TRIES)


def test_peaks_that_a_kernel_exceeds_are_measured_again(
    config: SupervisorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = probe_of(monkeypatch, (33, 30), (45, 30), (44, 30), (43, 30), (99, 30))
    assert peaks.device_peak(config).peak.bytes_per_s == 3.3e10
    assert peaks.device_peak(config, 3.2e10).peak.bytes_per_s == 3.3e10
    assert peaks.device_peak(config, 4e10).peak.bytes_per_s == 4.5e10
    for _ in range(5):  # in vain
        assert peaks.device_peak(config, 6e10).peak.bytes_per_s == 4.5e10
    assert len(left) == 1


def test_a_gpus_ceiling_is_the_higher_of_data_sheet_and_driver(
    config: SupervisorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"compute_capability": (9, 0), "name": "NVIDIA H200", "memory_clock_mhz": 3201}
    facts |= {"memory_bus_bits": 6144, "sm_clock_mhz": 1980, "cores": 16896}
    for name, value in facts.items():
        monkeypatch.setattr(f"gpu_runner.supervisor.host.nvml.{name}", lambda index, v=value: v)
    found = generous_peak(DeviceKind.CUDA, 0)
    assert found is not None
    assert found.bytes_per_s == pytest.approx(4.917e12, rel=1e-3)
    assert found.flops["float32"] == pytest.approx(66.9e12, rel=1e-3)
    assert found.flops["bfloat16"] == pytest.approx(1070.5e12, rel=1e-3)
    assert found.flops["int8"] == found.flops["float8_e4m3fn"] == 2 * found.flops["bfloat16"]
    assert found.cache_bytes == PEAKS["NVIDIA H200"].cache_bytes
    monkeypatch.setattr("gpu_runner.supervisor.host.nvml.name", lambda index: "NVIDIA Unheard Of")
    assert generous_peak(DeviceKind.CUDA, 0) == device.driver_peak(0)

    def fail(index: int) -> int:
        raise NvmlError("it does not say")

    monkeypatch.setattr("gpu_runner.supervisor.host.nvml.cores", fail)
    device.driver_peak.cache_clear()
    assert generous_peak(DeviceKind.CUDA, 0) is None
