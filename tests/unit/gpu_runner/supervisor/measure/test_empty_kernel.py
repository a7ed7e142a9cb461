"""A calibration that a bad moment of the host made vague is made again, and soon forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from gpu_runner.data.integrity import Burst
from gpu_runner.data.protocol import CALIBRATION_ATTEMPTS, DISTURBED_NS, PRECISE_NS
from gpu_runner.data.signature import Signature
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction
from gpu_runner.supervisor import readiness
from gpu_runner.supervisor.build.build import build_trusted
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure import empty_kernel
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.collected import Collected
from gpu_runner.supervisor.measure.empty_kernel import (
    EmptyKernelCalibration,
    Habit,
    build_empty,
    habit,
)
from gpu_runner.supervisor.runner.target import Target
from tests.unit.gpu_runner.engine.stub import make_task

WORKLOAD = Workload(name="only", parameters={})
TARGET = Target(Abi.TORCH, Direction.FORWARD)
VAGUE_NS = 4 * PRECISE_NS[DeviceKind.CUDA]


class Host:
    """Bursts of the empty kernel; the odd ones are late by what the moment has."""

    def __init__(self, *late_ns: float) -> None:
        self.late_ns = list(late_ns)
        self.calibrations = 0

    def run_empty(
        self, target: Target, workloads: list[Workload], bursts: int, idle_ns: float = 0.0
    ) -> dict[str, Collected]:
        late_ns = self.late_ns[min(self.calibrations, len(self.late_ns) - 1)]
        self.calibrations += 1
        made = [Burst(calls=1, held_ns=200_000.0 + (n % 2) * late_ns) for n in range(20)]
        return {w.name: Collected(bursts=made, host_ns=[1], held_ns=[1.0]) for w in workloads}


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(empty_kernel, "stack", lambda config: "of this test")


def deviation_ns(
    host: Host,
    folder: Path,
    *,
    kind: DeviceKind = DeviceKind.CUDA,
    index: int = 0,
    fresh: bool = False,
) -> float:
    config = SupervisorConfig(kind=kind, device="test", index=index, cache_folder=folder)
    times = EmptyKernelCalibration(make_task("", {}), Direction.FORWARD, config, TARGET)
    return times.of(cast(Bench, host), [WORKLOAD], fresh=fresh)["only"].deviation_ns


def test_a_precise_one_is_remembered_for_its_gpu_alone(tmp_path: Path) -> None:
    host = Host(0.0)
    assert deviation_ns(host, tmp_path) == deviation_ns(host, tmp_path) == 0
    assert host.calibrations == 1
    deviation_ns(host, tmp_path, index=1)
    assert host.calibrations == 2
    vague = Host(VAGUE_NS, 0.0, VAGUE_NS, 0.0)  # is made again until it is precise
    for calibrations in (2, 4):
        assert deviation_ns(vague, tmp_path, index=2, fresh=calibrations == 4) == 0
        assert vague.calibrations == calibrations


def test_of_vague_ones_the_best_counts_and_is_soon_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(2 * VAGUE_NS, VAGUE_NS, 3 * VAGUE_NS)
    assert deviation_ns(host, tmp_path) == VAGUE_NS / 2
    assert host.calibrations == CALIBRATION_ATTEMPTS
    deviation_ns(host, tmp_path)
    assert host.calibrations == CALIBRATION_ATTEMPTS
    monkeypatch.setattr(empty_kernel, "VAGUE_VALID_S", dict.fromkeys(DeviceKind, 0.0))
    deviation_ns(host, tmp_path)
    assert host.calibrations == 2 * CALIBRATION_ATTEMPTS


class Disturbed(Host):
    """Single calls of the empty kernel that take now this long and now that."""

    def run_empty(
        self, target: Target, workloads: list[Workload], bursts: int, idle_ns: float = 0.0
    ) -> dict[str, Collected]:
        found = super().run_empty(target, workloads, bursts)
        for collected in found.values():
            collected.held_ns = [40e3 + n % 2 * 2 * DISTURBED_NS[DeviceKind.CPU] for n in range(20)]
        return found


@pytest.mark.parametrize(("host", "calibrations"), [(Host(0.0), 1), (Disturbed(0.0), 2)])
def test_one_of_a_disturbed_cpu_is_soon_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: Host, calibrations: int
) -> None:
    monkeypatch.setattr(empty_kernel, "VAGUE_VALID_S", dict.fromkeys(DeviceKind, 0.0))
    deviation_ns(host, tmp_path, kind=DeviceKind.CPU)
    deviation_ns(host, tmp_path, kind=DeviceKind.CPU)
    assert host.calibrations == calibrations


@pytest.mark.parametrize(
    ("text", "expected"),
    list(zip(readiness.KERNELS[DeviceKind.CPU], (Habit.NONE, Habit.TEAM), strict=True)),
)
def test_the_empty_kernel_has_a_team_of_threads_or_waits_where_the_kernel_does(
    tmp_path: Path, text: str, expected: Habit
) -> None:
    """A host makes one kernel of each habit before its first evaluation."""
    config = SupervisorConfig(kind=DeviceKind.CPU, device="cpu", cache_folder=tmp_path)
    signature = Signature.parse("void copy(const float* A, float* C, int N)")
    flags = tuple(toolchain.flags(DeviceKind.CPU, Abi.C, ""))
    library = build_trusted(Recipe({"k.cpp": text}, "k.cpp", DeviceKind.CPU, flags), config)
    found = habit(DeviceKind.CPU, Target(Abi.C, Direction.FORWARD, library=library))
    assert found is expected
    empty = build_empty(signature, config, found)
    assert habit(DeviceKind.CPU, Target(Abi.C, Direction.FORWARD, library=empty)) is found
    for call, waits in (("cudaStreamSynchronize_ptsz", Habit.WAIT), ("cudaFreeAsync", Habit.NONE)):
        text = f'extern "C" int {call}();\nextern "C" void copy() {{ {call}(); }}\n'
        library = build_trusted(Recipe({"k.cpp": text}, "k.cpp", DeviceKind.CPU, flags), config)
        assert habit(DeviceKind.CUDA, Target(Abi.C, Direction.FORWARD, library=library)) is waits
