"""A result's page says what the device could do at best, in words and for each workload."""

from __future__ import annotations

from typing import Any

import pytest

from runs_app.submissions.page import (
    environment_rows,
    limit_sentences,
    slow_baseline_sentence,
    threads_sentence,
    workload_rows,
)

THEORETICAL = {
    "bytes_per_s": 4.8e12, "flop_per_s": 66.9e12, "source": "the maker's data sheet",
    "fraction": 0.4,
}  # fmt: skip
MEASURED = {
    "bytes_per_s": 4e12, "flop_per_s": 6e13, "source": "measured on this host", "fraction": 0.5
}  # fmt: skip


def document(**peaks: Any) -> dict[str, Any]:
    timed = {"time_ns": 1e6, "low_ns": 1e6, "high_ns": 1e6, "calls": 9}
    rows = [
        {"name": "moves", "measurement": timed, "bytes": 2e9, "flops": 1e9, "floor_ns": 4e5},
        {"name": "computes", "measurement": timed, "bytes": 1e6, "flops": 3e10},
        {"name": "free", "measurement": timed},
        {"name": "unmeasured", "bytes": 1e6, "flops": 1e6},
    ]
    return {"workloads": rows, "environment": {"torch": "2.0", "peaks": peaks}}


def test_both_limits_are_said_in_words() -> None:
    words = limit_sentences(document(theoretical=THEORETICAL, measured=MEASURED))
    assert words == [
        "Physical limit: 4.80 TB/s and 66.9 TFLOP/s, the maker's data sheet;"
        " this kernel reaches 40.0 %.",
        "Measured peak: 4.00 TB/s and 60.0 TFLOP/s, measured on this host;"
        " this kernel reaches 50.0 %.",
    ]
    assert limit_sentences(document(note="there is no limit")) == ["There is no limit."]
    assert limit_sentences({}) == []
    assert environment_rows(document(measured=MEASURED)) == [("torch", "2.0")]


def test_an_environment_is_read_without_marks_of_json() -> None:
    blocks = [{"name": "process 1", "before": {"cpu_mhz": 2445}, "throttled": False}]
    assert environment_rows({"environment": {"tf32": False, "cpus": 2, "blocks": blocks}}) == [
        ("tf32", "no"),
        ("cpus", "2"),
        ("blocks", "name process 1, before cpu mhz 2445, throttled no"),
    ]


def test_threads_with_which_outputs_were_verified_are_said_in_words() -> None:
    told = {"verified_with_threads": 4, "races": "none in 3 of 3 public workloads", "torch": "2.0"}
    said = "Outputs were verified with teams of 4 threads, too."
    words = f"{said} Races: none in 3 of 3 public workloads."
    assert threads_sentence({"environment": told}) == words
    assert threads_sentence({"environment": {"torch": "2.0"}}) == ""
    assert threads_sentence({}) == ""


def test_each_workload_has_its_share_of_the_measured_peak() -> None:
    rows = {row.name: row for row in workload_rows(document(measured=MEASURED))}
    assert rows["moves"].measured_fraction == pytest.approx(0.5)
    assert rows["moves"].floor_fraction == pytest.approx(0.4)
    assert rows["computes"].measured_fraction == pytest.approx(0.5)
    assert rows["free"].measured_fraction is rows["unmeasured"].measured_fraction is None
    assert all(row.measured_fraction is None for row in workload_rows(document()))


def timed(time_ns: float) -> dict[str, Any]:
    return {"time_ns": time_ns, "low_ns": time_ns, "high_ns": time_ns, "calls": 9}


def entry(name: str, floor_ns: float, *baselines_ns: float, hidden: bool = False) -> dict[str, Any]:
    baselines = {str(index): timed(time_ns) for index, time_ns in enumerate(baselines_ns)}
    own = {"measurement": timed(1e6), "baselines": baselines, "hidden": hidden}
    return {"name": name, "floor_ns": floor_ns, **own}


def test_a_speedup_over_a_baseline_far_from_the_limit_says_so() -> None:
    rows = workload_rows(
        {
            "workloads": [
                entry("fast", 1e5, 9e5, 90e5),
                entry("slow", 1e5, 136e5, 140e5),
                entry("short", 1e4, 9e5),
                entry("secret", 1e5, 500e5, hidden=True),
            ]
        }
    )
    words = slow_baseline_sentence(rows)
    assert words.startswith("On 1 of 2 workloads with a limit of 50 µs or more")
    assert "(136 times on slow)" in words
    assert "secret" not in words
    assert slow_baseline_sentence(row for row in rows if row.name != "slow") == ""
