"""A result's page says what the device could do at best, in words and for each workload."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import DeviceKind
from runs_app.submitting.page import (
    environment_rows,
    limit_sentences,
    slow_baseline_sentence,
    threads_sentence,
    workload_rows,
)
from tests.results import told

THEORETICAL = {
    "bytes_per_s": 4.8e12, "flop_per_s": 66.9e12, "source": "the maker's data sheet",
    "fraction": 0.4,
}  # fmt: skip
MEASURED = {
    "bytes_per_s": 4e12, "flop_per_s": 6e13, "source": "measured on this host", "fraction": 0.5
}  # fmt: skip


def result(**peaks: Any) -> EvaluationResult:
    timed = {"time_ns": 1e6, "low_ns": 1e6, "high_ns": 1e6, "calls": 9}
    rows = [
        {"name": "moves", "measurement": timed, "bytes": 2e9, "flops": 1e9, "floor_ns": 4e5},
        {"name": "computes", "measurement": timed, "bytes": 1e6, "flops": 3e10},
        {"name": "free", "measurement": timed},
        {"name": "unmeasured", "bytes": 1e6, "flops": 1e6},
    ]
    return told(workloads=rows, environment={"torch": "2.0", "peaks": peaks})


def test_both_limits_are_said_in_words() -> None:
    words = limit_sentences(result(theoretical=THEORETICAL, measured=MEASURED).environment)
    assert words == [
        "Physical limit: 4.80 TB/s and 66.9 TFLOP/s, the maker's data sheet;"
        " this kernel reaches 40.0 %.",
        "Measured peak: 4.00 TB/s and 60.0 TFLOP/s, measured on this host;"
        " this kernel reaches 50.0 %.",
        "Caches are emptied before each call, so memory bandwidth counts.",
    ]
    of_a_cpu = limit_sentences(Environment(device_kind=DeviceKind.CPU))
    assert of_a_cpu == ["Run it in profile mode to see the measured peak of this CPU."]
    assert limit_sentences(result(note="there is no limit").environment) == ["There is no limit."]
    assert limit_sentences(Environment()) == []
    assert environment_rows(result(measured=MEASURED).environment) == [("torch", "2.0")]


def test_threads_with_which_outputs_were_verified_are_said_in_words() -> None:
    races = "none in 3 of 3 public workloads"
    said = "Outputs were verified with teams of 4 threads, too."
    words = f"{said} Races: {races}."
    assert threads_sentence(Environment(verified_with_threads=4, races=races)) == words
    assert threads_sentence(Environment(torch="2.0")) == ""


def test_each_workload_has_its_share_of_the_measured_peak() -> None:
    rows = {row.name: row for row in workload_rows(result(measured=MEASURED))}
    assert rows["moves"].measured_fraction == pytest.approx(0.5)
    assert rows["moves"].floor_fraction == pytest.approx(0.4)
    assert rows["computes"].measured_fraction == pytest.approx(0.5)
    assert rows["free"].measured_fraction is rows["unmeasured"].measured_fraction is None
    assert all(row.measured_fraction is None for row in workload_rows(result()))


def timed(time_ns: float) -> dict[str, Any]:
    return {"time_ns": time_ns, "low_ns": time_ns, "high_ns": time_ns, "calls": 9}


def entry(name: str, floor_ns: float, *baselines_ns: float, hidden: bool = False) -> dict[str, Any]:
    baselines = {str(index): timed(time_ns) for index, time_ns in enumerate(baselines_ns)}
    own = {"measurement": timed(1e6), "baselines": baselines, "hidden": hidden}
    return {"name": name, "floor_ns": floor_ns, **own}


def test_a_speedup_over_a_baseline_far_from_the_limit_says_so() -> None:
    rows = workload_rows(
        told(
            workloads=[
                entry("fast", 1e5, 9e5, 90e5),
                entry("slow", 1e5, 136e5, 140e5),
                entry("short", 1e4, 9e5),
                entry("secret", 1e5, 500e5, hidden=True),
            ]
        )
    )
    words = slow_baseline_sentence(rows)
    assert words.startswith("On 1 of 2 workloads with a limit of 50 µs or more")
    assert "(136 times on slow)" in words
    assert "secret" not in words
    assert slow_baseline_sentence(row for row in rows if row.name != "slow") == ""
