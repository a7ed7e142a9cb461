"""Classes by what limits a kernel: the paper's, whose threshold fits a device, and our own."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from gpu_runner.data.profile import THROUGHPUTS
from gpu_runner.data.verdict import Mode
from runs_app.core.profile import diagnosis
from runs_app.core.profile.bottleneck import (
    CLASS_METRICS,
    Bottleneck,
    calibrate,
    class_of,
    classify,
    filtered,
    otsu,
)
from runs_app.core.profile.diagnosis import ClassScore, class_line, class_scores, diagnosis_of
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


def test_a_prompt_does_not_call_53_percent_a_limit() -> None:
    for papers in ("neither", "memory_bandwidth"):
        assert class_line(papers, metrics(12, 53, 50)).startswith("Class: neither, ")
    for papers, found in (("compute", metrics(32, 80.2, 50)),  # it was above the threshold
                          ("memory_bandwidth", metrics(12, 91, 50))):  # fmt: skip
        assert class_line(papers, found).startswith("Class: memory_bandwidth, ")
    assert class_line("compute", {}) == class_line("", {}) == ""


def test_stalls_are_told_where_they_are_counted() -> None:
    found = {
        "stall_long_scoreboard_cycles_per_inst": 8.0,
        "stall_barrier_cycles_per_inst": 1.25,
        "dram_throughput_pct": 40.0,
    }
    assert diagnosis.stall_line(found).endswith(": long scoreboard 8, barrier 1.2")
    assert diagnosis.stall_line({}) == ""


def test_cudamaster_keeps_its_classes_and_others_get_the_diagnosis() -> None:
    profiled = a_result(1000.0, mode=Mode.PROFILE, throughputs=(10.0, 53.0, 40.0))
    for strategy, expected in (("cudamaster", "memory_bandwidth"), ("islands", "neither")):
        drive = begin(a_problem(), a_config(strategy), talking_world(1))
        assert drive.optimizer._class_of(profiled) == expected


@dataclass
class Kernel:
    number: int
    parents: tuple[int, ...] = ()
    techniques: tuple[str, ...] = ()
    bottleneck: str = ""
    latency_ns: float | None = 100.0
    spread: float | None = 0.01


def test_a_class_is_scored_by_what_helped_beyond_noise() -> None:
    kernels = [
        Kernel(1, bottleneck="memory_bandwidth"),
        Kernel(2, (1,), ("prefetch",), latency_ns=120.0),
        Kernel(3, (1,), ("streaming stores",), latency_ns=99.5),  # within the noise
        Kernel(4, (1,), ("fast maths",), latency_ns=60.0),
        Kernel(5, (1,), (), latency_ns=None),
        Kernel(6, (4,), ("prefetch",), latency_ns=10.0),  # its parent has no class
    ]
    [score] = class_scores(kernels)
    assert score == ClassScore(
        "memory_bandwidth", followed=2, followed_helped=0, others=1, others_helped=1
    )
    assert (score.followed_share, score.others_share) == (0.0, 1.0)
    assert ClassScore("compute").followed_share is None
    assert class_scores([]) == []


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


def test_only_a_profile_has_a_class() -> None:
    assert classify(a_result(1000.0), 30.0) == ""
    assert classify(a_result(1000.0, mode=Mode.PROFILE), 30.0) == "memory_bandwidth"
    assert class_of({"compute_throughput_pct": 50.0}, 30.0) == ""


def test_the_filter_keeps_a_classs_metrics_or_shows_stand_ins() -> None:
    metrics = {name: 1.0 for names in CLASS_METRICS.values() for name in names}
    for name in Bottleneck:
        assert tuple(filtered(metrics, name)) == CLASS_METRICS[name]
    assert filtered(metrics, "") == metrics
    throughputs = dict.fromkeys(THROUGHPUTS, 5.0)
    assert filtered(throughputs, "memory_latency") == throughputs
    portable = {**throughputs, "achieved_bytes_per_s": 1e9, "peak_bytes_per_s": 4e9, "other": 1.0}
    assert list(filtered(portable, "memory_bandwidth")) == [
        "dram_throughput_pct", "achieved_bytes_per_s", "peak_bytes_per_s",
    ]  # fmt: skip
    assert filtered(throughputs, "compute") == {"compute_throughput_pct": 5.0}


def test_otsu_cuts_between_two_groups() -> None:
    assert otsu([52, 1, 51, 2, 50, 3]) == pytest.approx(26.5)
    assert otsu([0.0, 100.0]) == 50.0
    assert otsu([10] * 9 + [20]) == 15.0
    with pytest.raises(ValueError, match="two different"):
        otsu([3.0, 3.0])
    values = [3, 7, 8, 12, 25, 31, 44, 46, 47, 60, 80, 81]

    def within(cut: float) -> float:
        groups = [v for v in values if v < cut], [v for v in values if v > cut]
        return sum(sum((v - sum(g) / len(g)) ** 2 for v in g) for g in groups)

    cuts = [(a + b) / 2 for a, b in itertools.pairwise(values)]
    assert otsu(values) == min(cuts, key=within)


def test_calibration_needs_enough_profiles() -> None:
    few = [5.0, 60.0, 70.0] * 7
    assert calibrate(few) == 30.0
    assert calibrate([*few, 5.0, 60.0, 70.0]) == pytest.approx(32.5)
    assert calibrate([40.0] * 24) == 30.0
