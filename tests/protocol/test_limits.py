"""What an evaluation takes of a device is bounded, and what it draws cannot be computed."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.integrity import Check
from gpu_runner.data.protocol import RECALIBRATIONS
from gpu_runner.data.task import Work
from gpu_runner.data.verdict import Direction, Mode, Verdict
from gpu_runner.supervisor import evaluate as protocol
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.empty_kernel import EmptyKernelCalibration
from gpu_runner.supervisor.measure.outside import UNSEEN, EmptyKernelTime
from gpu_runner.supervisor.report import describe
from gpu_runner.supervisor.runner import session
from gpu_runner.supervisor.runner.freeze import Freezer
from gpu_runner.supervisor.tools import health, peaks
from gpu_runner.supervisor.tools.calibrate import Calibration, store
from tests.protocol.evaluating import evaluated, needs_jail, only

pytestmark = needs_jail

ATTEMPTS = 3
"""A busy host may leave the clock no better calibration than a bad one."""
SMALL = only("vector_add", "cpu_n16384")
SLOW = Calibration(bytes_per_s={"read": 1e9, "copy": 1e9}, flops={"float32": 1e11, "float64": 5e10})
LONG_KERNEL = """
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  for (int again = 0; again < 24; ++again) {
    for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
    asm volatile("" ::: "memory");
  }
}
"""


def test_calls_that_take_too_long_in_all_are_the_kernels_fault(tmp_path: Path) -> None:
    result = evaluated(SupervisorConfig(cache_folder=tmp_path, measure_timeout_s=0.001), SMALL)
    assert result.verdict is Verdict.TIME_LIMIT
    assert "0.001 s" in result.reason


def test_a_candidate_that_cannot_beat_its_runs_best_is_stopped_and_told_so(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    result = evaluated(config, SMALL, mode=Mode.QUICK, must_beat_ns={"cpu_n16384": 1.0})
    assert (result.verdict, result.latency_ns) == (Verdict.TOO_SLOW, None)
    assert result.reason.startswith("stopped: cpu_n16384 takes ")
    assert "above 1.00 ns it can't beat" in result.reason


def test_no_generator_that_can_be_computed_on_draws_what_submissions_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn_by: list[random.Random] = []

    class Watched(Bench):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            drawn_by.append(self._rng)

    monkeypatch.setattr(protocol, "Bench", Watched)
    result = evaluated(SupervisorConfig(cache_folder=tmp_path), SMALL)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert isinstance(drawn_by[0], random.SystemRandom)
    with pytest.raises(NotImplementedError):
        drawn_by[0].getstate()


def test_a_host_on_which_nothing_can_be_stopped_is_unfit_and_its_device_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Freezer, "tree", lambda _: [])
        result = evaluated(config, SMALL)
    assert result.verdict is Verdict.SYSTEM_ERROR
    assert "this host doesn't list processes' children" in result.reason
    looked: list[SupervisorConfig] = []

    def look(config: SupervisorConfig, *_: object) -> str:
        looked.append(config)
        return ""

    monkeypatch.setattr(health, "check", look)
    assert evaluated(config, SMALL).verdict is Verdict.CORRECT
    assert len(looked) == 1


@pytest.mark.parametrize(
    ("bad_moments", "verdict", "calibrations"),
    [(1, Verdict.CORRECT, 2), (99, Verdict.SYSTEM_ERROR, 1 + RECALIBRATIONS)],
)
def test_a_clock_that_is_blind_is_calibrated_again_and_proves_no_time(
    bad_moments: int,
    verdict: Verdict,
    calibrations: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where no processor is free to watch a gate, processor time is all that the clock has."""
    monkeypatch.setattr(session, "has_own_cpu", lambda: False)
    made: list[EmptyKernelTime] = []
    measured = EmptyKernelCalibration._measure

    def measure(times: EmptyKernelCalibration, *arguments: Any) -> dict[Path, EmptyKernelTime]:
        found = measured(times, *arguments)
        if len(made) < bad_moments:
            found = {n: replace(t, spread_ns=1e6, deviation_ns=1e8) for n, t in found.items()}
        made.extend(found.values())
        return found

    monkeypatch.setattr(EmptyKernelCalibration, "_measure", measure)
    task = only("vector_add", "cpu_n262144")
    for attempt in range(ATTEMPTS):  # a busy host disturbs the good calibrations, too
        made.clear()
        config = SupervisorConfig(cache_folder=tmp_path / str(attempt))
        result = evaluated(config, task, LONG_KERNEL, Mode.RANKED)
        if result.verdict is verdict:
            break
    assert result.verdict is verdict, result.reason
    assert (result.reason == UNSEEN) is (verdict is Verdict.SYSTEM_ERROR)
    assert calibrations <= len(made) <= 1 + RECALIBRATIONS


def test_an_honest_kernel_that_beats_an_inflated_floor_is_suspected_not_accused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peaks, "CPU_LEAST_BYTES_PER_S", 0.0)
    config = SupervisorConfig(cache_folder=tmp_path)
    store(config, SLOW)
    work = {Direction.FORWARD: Work(flops="N", bytes="200 * N")}
    result = evaluated(config, replace(SMALL, work=work))
    assert result.verdict is Verdict.CORRECT, result.reason + result.log
    (found,) = result.suspicions
    assert found.check is Check.FLOOR
    assert found.reason.startswith("cpu_n16384 took")
    assert result.environment.peaks.measured.fraction > 1
    assert "fastest calls" in result.environment.estimator
    printed = describe(result)
    assert "of what was measured to be possible" in printed
    assert "    floor: cpu_n16384 took" in printed
