"""CUDAMaster's classes, its filter, and the threshold that fits a device."""

from __future__ import annotations

import itertools

import pytest

from gpu_runner.data.profile import THROUGHPUTS
from gpu_runner.data.verdict import Mode
from runs_app.core.profile.bottleneck import (
    CLASS_METRICS,
    Bottleneck,
    calibrate,
    class_of,
    classify,
    filtered,
    otsu,
)
from tests.unit.runs_app.optimiser.evolve.driving import a_result


@pytest.mark.parametrize(
    ("compute", "dram", "memory", "expected"),
    [
        (31, 0, 0, "compute"),
        (90, 90, 90, "compute"),
        (30, 31, 0, "memory_bandwidth"),
        (0, 0, 31, "memory_bandwidth"),
        (29, 29, 29, "memory_latency"),
        (30, 30, 30, "memory_latency"),
    ],
)
def test_rules(compute: float, dram: float, memory: float, expected: str) -> None:
    metrics = dict(zip(THROUGHPUTS, (compute, dram, memory), strict=True))
    assert class_of(metrics, 30.0) == expected


def test_the_threshold_moves_the_classes() -> None:
    metrics = dict(zip(THROUGHPUTS, (40, 50, 50), strict=True))
    assert class_of(metrics, 45.0) == "memory_bandwidth"
    assert class_of(metrics, 60.0) == "memory_latency"


def test_only_a_profile_has_a_class() -> None:
    assert classify(a_result(1000.0), 30.0) == ""
    assert classify(a_result(1000.0, mode=Mode.PROFILE), 30.0) == "memory_bandwidth"
    assert class_of({"compute_throughput_pct": 50.0}, 30.0) == ""


def test_the_filter_keeps_a_classs_metrics() -> None:
    metrics = {name: 1.0 for names in CLASS_METRICS.values() for name in names}
    for name in Bottleneck:
        assert tuple(filtered(metrics, name)) == CLASS_METRICS[name]
    assert filtered(metrics, "") == metrics


def test_without_counters_stand_ins_are_shown() -> None:
    throughputs = dict.fromkeys(THROUGHPUTS, 5.0)
    assert filtered(throughputs, "memory_latency") == throughputs
    portable = {**throughputs, "achieved_bytes_per_s": 1e9, "peak_bytes_per_s": 4e9, "other": 1.0}
    assert list(filtered(portable, "memory_bandwidth")) == [
        "dram_throughput_pct", "achieved_bytes_per_s", "peak_bytes_per_s",
    ]  # fmt: skip
    assert filtered(throughputs, "compute") == {"compute_throughput_pct": 5.0}


def test_otsu_cuts_between_two_groups() -> None:
    assert otsu([1, 2, 3, 50, 51, 52]) == pytest.approx(26.5)
    assert otsu([52, 1, 51, 2, 50, 3]) == pytest.approx(26.5)
    assert otsu([0.0, 100.0]) == 50.0
    assert otsu([10] * 9 + [20]) == 15.0
    with pytest.raises(ValueError, match="two different"):
        otsu([3.0, 3.0])


def test_otsu_agrees_with_the_variance_within_classes() -> None:
    values = [3, 7, 8, 12, 25, 31, 44, 46, 47, 60, 80, 81]

    def within(cut: float) -> float:
        groups = [v for v in values if v < cut], [v for v in values if v > cut]
        return sum(sum((v - sum(g) / len(g)) ** 2 for v in g) for g in groups)

    cuts = [(a + b) / 2 for a, b in itertools.pairwise(values)]
    assert otsu(values) == min(cuts, key=within)


def test_calibration_needs_enough_profiles() -> None:
    few = [5.0, 60.0, 70.0] * 7
    assert calibrate(few) == 30.0
    assert calibrate(few, default=25.0) == 25.0
    assert calibrate([*few, 5.0, 60.0, 70.0]) == pytest.approx(32.5)
    assert calibrate([40.0] * 24) == 30.0
