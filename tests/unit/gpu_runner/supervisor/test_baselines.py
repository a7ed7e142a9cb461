"""A remembered baseline follows the device's speed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.evaluation import Measurement
from gpu_runner.data.formats import find_task
from gpu_runner.data.protocol import BASELINE_PROCESSES
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.supervisor.baselines import Baseline, Baselines
from gpu_runner.supervisor.host.config import SupervisorConfig

THEN = Measurement(time_ns=1000.0, low_ns=990.0, high_ns=1010.0, calls=30)


def test_slower_device_makes_the_baseline_slower() -> None:
    baseline = Baseline(measurement=THEN, anchor_ns=100.0).carried(110.0)
    assert baseline.measurement is not None
    assert baseline.measurement.time_ns == pytest.approx(1100.0)
    assert baseline.measurement.high_ns == pytest.approx(1111.0)


@pytest.mark.parametrize("anchor_ns", [101.0, 99.0, None])
def test_noise_of_the_anchor_corrects_nothing(anchor_ns: float | None) -> None:
    assert Baseline(measurement=THEN, anchor_ns=100.0).carried(anchor_ns).measurement == THEN


def test_failed_baseline_stays_failed() -> None:
    failed = Baseline(measurement=None, error="it does not compile", anchor_ns=1.0)
    assert failed.carried(2.0) == failed


def test_processes_are_expected_for_what_is_not_remembered(tmp_path: Path) -> None:
    task = find_task("vector_add")
    workloads = task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=False)
    baselines = Baselines(task, Direction.FORWARD, SupervisorConfig(cache_folder=tmp_path))
    expected = BASELINE_PROCESSES[DeviceKind.CPU]  # `compiled` is measured apart
    for workload in workloads:
        assert baselines.expected_processes(workloads) == expected
        baselines._remember(workload, "eager", Baseline(measurement=THEN))
    assert baselines.expected_processes(workloads) == 0
