"""A remembered baseline follows the device's speed."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from gpu_runner.data.evaluation import Measurement
from gpu_runner.data.formats import find_task
from gpu_runner.data.protocol import BASELINE_PROCESSES
from gpu_runner.data.verdict import DeviceKind, Direction, Verdict
from gpu_runner.supervisor.baselines import Baseline, Baselines
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.killed import KilledFromOutside
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.collected import Measured
from gpu_runner.supervisor.runner.faults import Fault, FaultError

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


class Killed:
    """A bench whose processes somebody kills."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    def run(self, *_: object) -> Measured:
        raise self._errors.pop(0)


def test_a_baseline_that_is_killed_is_measured_once_more(tmp_path: Path) -> None:
    """One that the host always kills, because it takes too much, must not end evaluations."""
    task = find_task("vector_add")
    workload, *_ = task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=False)
    for last in (FaultError(Fault(Verdict.TIME_LIMIT, "slow")), KilledFromOutside("again")):
        baselines = Baselines(task, Direction.FORWARD, SupervisorConfig(cache_folder=tmp_path))
        bench = cast(Bench, Killed(KilledFromOutside("killed"), last, AssertionError()))
        baselines.measure_missing(bench, [workload], lambda *_: None)
        assert baselines.known(workload)["eager"].error == str(last)
        assert baselines.pending([workload]) == ("eager", "compiled"), "it may work another time"
        assert baselines.report([workload]).pending == ("eager", "compiled")
        baselines._remember(workload, "eager", Baseline(measurement=None, error="wrong"))
        assert baselines.pending([workload]) == ("compiled",)
        (tmp_path / "other").mkdir()
        tmp_path = tmp_path / "other"


def test_a_noisy_baseline_does_for_modes_that_measure_none(tmp_path: Path) -> None:
    """Without it, nobody learns on a busy host how much faster a kernel is."""
    task = find_task("vector_add")
    workload, *_ = task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=False)
    noisy = Baseline(measurement=Measurement(time_ns=1000.0, low_ns=500.0, high_ns=1500.0, calls=9))

    def another() -> Baselines:
        return Baselines(task, Direction.FORWARD, SupervisorConfig(cache_folder=tmp_path))

    another()._remember(workload, "eager", noisy)
    assert another().known(workload) == {}
    assert another().expected_processes([workload])
    assert another().known(workload, noisy=True) == {"eager": noisy}
    another()._remember(workload, "eager", Baseline(measurement=THEN))
    assert another().known(workload, noisy=True)["eager"].measurement == THEN


def test_a_library_that_cannot_do_it_is_not_asked_again(tmp_path: Path) -> None:
    """One size at a time, since it may be able to do others."""
    task = find_task("multi_head_attention_bf16")
    first, second, *_ = task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=False)
    missing = FaultError(Fault(Verdict.RUNTIME_ERROR, "No module named 'fast'"))
    slow = FaultError(Fault(Verdict.TIME_LIMIT, "slow"))
    baselines = Baselines(task, Direction.FORWARD, SupervisorConfig(cache_folder=tmp_path))
    bench = cast(Bench, Killed(slow, missing, missing, missing, slow))
    baselines.measure_slow(bench, [first, second], lambda *_: None)
    assert baselines.pending([first, second]) == ("compiled", "flash")
    assert baselines.known(first)["cudnn"].error == str(missing)
    baselines.measure_slow(cast(Bench, Killed(slow, slow)), [first, second], lambda *_: None)


def test_an_audit_measures_anew_and_forgets_what_was_too_slow(tmp_path: Path) -> None:
    task, config = find_task("vector_add"), SupervisorConfig(cache_folder=tmp_path)
    workload, *_ = task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=False)
    usual = Baselines(task, Direction.FORWARD, config)
    usual._remember(workload, "eager", Baseline(measurement=THEN))
    for time_ns, kept in ((900.0, True), (1500.0, True), (800.0, False)):
        audit = Baselines(task, Direction.FORWARD, config, anew=True)
        assert audit.expected_processes([workload]) == BASELINE_PROCESSES[DeviceKind.CPU]
        found = Measurement(time_ns=time_ns, low_ns=time_ns, high_ns=time_ns, calls=30)
        audit._remember(workload, "eager", Baseline(measurement=found))
        assert audit.known(workload)["eager"].measurement == found
        assert (usual.known(workload).get("eager") == Baseline(measurement=THEN)) is kept
