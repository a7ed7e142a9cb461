"""Classes by what limits a kernel: the paper's, whose threshold fits a device, and our own."""

from __future__ import annotations

import pytest

from gpu_runner.data.profile import THROUGHPUTS
from gpu_runner.data.verdict import Mode
from runs_app.core.profile.bottleneck import calibrate, class_of
from runs_app.core.profile.diagnosis import diagnosis_of
from tests.unit.runs_app.optimiser.evolve.driving import a_config, a_problem, a_result, begin
from tests.unit.runs_app.optimiser.evolve.worlds import talking_world


def metrics(compute: float, dram: float, memory: float) -> dict[str, float]:
    return dict(zip(THROUGHPUTS, (compute, dram, memory), strict=True))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (metrics(12, 53, 50), "neither"),
        (metrics(59.9, 0, 0), "neither"),
        (metrics(60, 10, 10), "uncertain"),
        (metrics(10, 79, 30), "uncertain"),
        (metrics(10, 80, 30), "memory_bandwidth"),
        (metrics(95, 80, 30), "compute"),
        ({}, ""),
    ],
)
def test_only_what_is_near_a_limit_is_limited_by_it(found: dict[str, float], expected: str) -> None:
    assert diagnosis_of(found) == expected


def test_cudamaster_keeps_its_classes_and_others_get_the_diagnosis() -> None:
    profiled = a_result(1000.0, mode=Mode.PROFILE, throughputs=(10.0, 53.0, 40.0))
    for strategy, expected in (("cudamaster", "memory_bandwidth"), ("islands", "neither")):
        drive = begin(a_problem(), a_config(strategy), talking_world(1))
        assert drive.optimizer._class_of(profiled) == expected


@pytest.mark.parametrize(
    ("found", "threshold", "expected"),
    [
        ((31, 0, 0), 30.0, "compute"),
        ((90, 90, 90), 30.0, "compute"),
        ((30, 31, 0), 30.0, "memory_bandwidth"),
        ((0, 0, 31), 30.0, "memory_bandwidth"),
        ((30, 30, 30), 30.0, "memory_latency"),
        ((40, 50, 50), 45.0, "memory_bandwidth"),
        ((40, 50, 50), 60.0, "memory_latency"),
    ],
)
def test_rules(found: tuple[float, ...], threshold: float, expected: str) -> None:
    assert class_of(metrics(*found), threshold) == expected


def test_calibration_needs_enough_profiles() -> None:
    few = [5.0, 60.0, 70.0] * 7
    assert calibrate(few) == 30.0
    assert calibrate([*few, 5.0, 60.0, 70.0]) == pytest.approx(32.5)
    assert calibrate([40.0] * 24) == 30.0
