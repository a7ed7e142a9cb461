"""A class says no more than the throughputs do, and is scored against what then helped."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gpu_runner.data.profile import THROUGHPUTS
from gpu_runner.data.verdict import Mode
from runs_app.core.profile.diagnosis import (
    ClassScore,
    class_line,
    class_scores,
    diagnosis_of,
    stall_line,
)
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
    own = class_line("neither", metrics(12, 53, 50))
    assert "near neither limit" in own
    papers = class_line("memory_bandwidth", metrics(12, 53, 50))
    assert papers.startswith("Class: neither, near neither limit")
    contradicted = class_line("compute", metrics(32, 80.2, 50))  # it was above the threshold
    assert contradicted == "Class: memory_bandwidth, near the memory bandwidth limit"
    sure = class_line("memory_bandwidth", metrics(12, 91, 50))
    assert sure == "Class: memory_bandwidth, near the memory bandwidth limit"
    assert class_line("compute", {}) == class_line("", {}) == ""


def test_stalls_are_told_where_they_are_counted() -> None:
    found = {
        "stall_long_scoreboard_cycles_per_inst": 8.0,
        "stall_barrier_cycles_per_inst": 1.25,
        "dram_throughput_pct": 40.0,
    }
    assert stall_line(found) == (
        "Warps wait most for (cycles per instruction): long scoreboard 8, barrier 1.2"
    )
    assert stall_line({}) == ""


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


def test_a_score_without_kernels_is_no_number() -> None:
    assert ClassScore("compute").followed_share is None
    assert class_scores([]) == []
