"""Energy of a device from its own counter."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.audit import facts
from gpu_runner.supervisor.host.config import SupervisorConfig


def package(folder: Path, number: int, used: int, largest: int = 999) -> Path:
    path = folder / f"intel-rapl:{number}"
    (path / f"intel-rapl:{number}:0").mkdir(parents=True)
    (path / "energy_uj").write_text(f"{used}\n")
    (path / "max_energy_range_uj").write_text(f"{largest}\n")
    return path


def test_the_energy_of_all_packages_counts_also_when_a_counter_starts_again(tmp_path: Path) -> None:
    first, second = package(tmp_path, 0, 990), package(tmp_path, 1, 10)
    joules = facts.rapl(tmp_path)
    assert joules() == 0
    (first / "energy_uj").write_text("15")
    (second / "energy_uj").write_text("20")
    assert joules() == pytest.approx(35e-6)


def test_a_host_without_counters_says_so(tmp_path: Path) -> None:
    with pytest.raises(facts.NoCounter, match="RAPL"):
        facts.rapl(tmp_path)
    (package(tmp_path, 0, 1) / "energy_uj").unlink()
    with pytest.raises(facts.NoCounter, match="let kbench read"):
        facts.rapl(tmp_path)
    with pytest.raises(facts.NoCounter, match="GPU"):
        facts.counter(SupervisorConfig(kind=DeviceKind.CUDA, index=99))


def test_work_is_metered_between_steps_of_the_counter() -> None:
    watts, step_s = 100.0, 0.01
    metered = facts.Metered(lambda: watts * step_s * (time.monotonic() // step_s))
    metered.begin()
    time.sleep(0.1)
    used, error = metered.end()
    assert watts * 0.1 <= used < watts * 0.2
    assert 0 < error < 0.5


def test_a_counter_that_stands_still_is_none() -> None:
    with pytest.raises(facts.NoCounter, match="did not move"):
        facts.Metered(lambda: 1.0).begin()
