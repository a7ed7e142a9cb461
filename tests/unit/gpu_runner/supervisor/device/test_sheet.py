"""The hardware sheet of a processor, from what the kernel says of it."""

from __future__ import annotations

from pathlib import Path

from gpu_runner.data.environment import Hardware
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.environment import cpu_sheet, environment
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.processors import measured_cpus

CPUINFO = """processor\t: 0
model name\t: AMD EPYC
cpu MHz\t\t: 2445.4
flags\t\t: fpu sse4_2 avx avx2 fma avx512f not_known
"""


def caches(folder: Path, *entries: tuple[int, str, str, str]) -> None:
    """Write what the kernel says of caches: level, kind, size, and who shares it."""
    for index, (level, kind, size, shared) in enumerate(entries):
        place = folder / f"cpu1/cache/index{index}"
        place.mkdir(parents=True)
        for name, text in (("level", str(level)), ("type", kind), ("size", size)):
            (place / name).write_text(f"{text}\n")
        (place / "shared_cpu_list").write_text(f"{shared}\n")
        (place / "coherency_line_size").write_text("64\n")


def test_features_clock_and_caches(tmp_path: Path) -> None:
    caches(
        tmp_path,
        (1, "Data", "32K", "1"),
        (1, "Instruction", "32K", "1"),
        (3, "Unified", "32768K", "0-1,8"),
    )
    assert cpu_sheet("", 0, tmp_path) == Hardware()
    found = cpu_sheet(CPUINFO, 1, tmp_path)
    assert found.features == ("sse4_2", "avx", "avx2", "fma", "avx512f")
    assert (found.clock_hz, found.clock_is) == (2445.4e6, "now")
    assert [(c.level, c.bytes, c.shared_by) for c in found.caches] == [
        (1, 32 * 1024, 1),
        (3, 32 * 2**20, 3),
    ]
    (tmp_path / "cpu1/cpufreq").mkdir()
    (tmp_path / "cpu1/cpufreq/cpuinfo_max_freq").write_text("3700000\n")
    found = cpu_sheet(CPUINFO, 1, tmp_path)
    assert (found.clock_hz, found.clock_is) == (3.7e9, "highest")


def test_a_result_tells_the_sheet_and_its_limit() -> None:
    config = SupervisorConfig(kind=DeviceKind.CPU, device="cpu", call_timeout_s=7.0)
    found = environment(config).hardware
    assert found is not None
    assert found.call_timeout_s == 7.0
    assert found.processors == len(measured_cpus())
