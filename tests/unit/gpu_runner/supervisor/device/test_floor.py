"""A device's floor: which times are suspected, and which cannot be."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_runner.data.evaluation import Measurement, WorkloadResult
from gpu_runner.data.integrity import Check
from gpu_runner.data.task import Cost
from gpu_runner.data.verdict import Direction
from gpu_runner.supervisor.device.device import Peak
from gpu_runner.supervisor.device.floor import (
    beats_physics,
    floor_ns,
    floor_suspicions,
    fraction,
    possible_rate,
)
from gpu_runner.supervisor.judge import workload_result
from tests.unit.gpu_runner.supervisor.test_judge import PEAK, SECRET, SMALL, TASK, exactly, facts


def test_time_that_physics_forbids_is_named_and_a_fast_one_is_not() -> None:
    honest = workload_result(TASK, SMALL, Direction.FORWARD, facts(8000.0), PEAK)
    from_cache = workload_result(TASK, SMALL, Direction.FORWARD, facts(4100.0), PEAK)
    forged = workload_result(TASK, SECRET, Direction.FORWARD, facts(1.0), PEAK)
    assert beats_physics([honest, from_cache], PEAK, "float32") == ""
    reason = beats_physics([honest, forged], PEAK, "float32")
    assert "hidden workload" in reason
    assert "28" not in reason  # its bytes would tell its size
    forged = workload_result(TASK, SMALL, Direction.FORWARD, facts(1.0), PEAK)
    assert "claims 1 ns on small" in beats_physics([forged], PEAK, "float32")


H200 = Peak(
    bytes_per_s=4.8e12,
    flops={"float32": 66.9e12, "float64": 66.9e12, "bfloat16": 989.5e12, "float16": 989.5e12},
    cache_bytes=60e6,
)
ADD = WorkloadResult(name="n16777216", parameters={}, hidden=False, bytes=12 * 2**24, flops=2**24)
PRODUCT = WorkloadResult(name="m4096", parameters={}, hidden=False, bytes=1e8, flops=68.7e9)


def suspected(
    workload: WorkloadResult, time_us: float, outputs: float | None, dtype: str = "float32"
) -> list[str]:
    timed = dataclasses.replace(workload, measurement=exactly(time_us * 1e3))
    known = {} if outputs is None else {workload.name: outputs}
    found = floor_suspicions([timed], H200, dtype, known)
    assert {suspicion.check for suspicion in found} <= {Check.FLOOR}
    return [suspicion.reason for suspicion in found]


def test_a_time_below_the_bytes_that_no_cache_saves_is_suspected() -> None:
    # 201 MB, of them 67 written, of which 60 may stay in the cache; a flush may leave 8.4 of it
    least_us = (12 * 2**24 - 60e6 - 0.14 * 60e6) / 4.8e12 * 1e6
    assert suspected(ADD, least_us - 0.9, 4.0 * 2**24) == []  # within the events' resolution
    (reason,) = suspected(ADD, least_us - 1.1, 4.0 * 2**24)
    assert reason.startswith("n16777216 took 26.6 µs, less than")
    assert "its bytes take" in reason


def test_outputs_that_fit_into_the_cache_do_not_count() -> None:
    written = dataclasses.replace(ADD, bytes=50e6)
    assert suspected(written, 0.1, 50e6) == []
    assert suspected(written, 0.1, 4.0) != []
    assert suspected(written, 0.1, None) != []  # half of it are inputs, if nobody knows better


def test_operations_may_be_saved_and_float32_may_be_computed_in_parts() -> None:
    assert possible_rate(H200, "bfloat16") == pytest.approx(4 * 989.5e12)
    assert possible_rate(H200, "float32") == pytest.approx(989.5e12 / 3 * 4 / 3)
    assert possible_rate(Peak(1e12, {"float32": 1e12}), "float32") == pytest.approx(4e12)
    assert possible_rate(H200, "int8") is None
    least_us = 68.7e9 / (989.5e12 / 3 * 4 / 3) * 1e6
    assert suspected(PRODUCT, least_us, None) == []
    (reason,) = suspected(PRODUCT, least_us - 1.1, None)
    assert "its operations take" in reason
    assert suspected(PRODUCT, least_us / 3, None, "bfloat16") == []
    assert suspected(PRODUCT, 10.0, 5e7, "int8") == []  # nothing is known of its rate


def test_small_noisy_and_free_workloads_are_never_suspected() -> None:
    small = dataclasses.replace(ADD, bytes=4e6)
    assert suspected(small, 0.001, 0.0) == []  # 0.8 us: the events cannot tell
    free = dataclasses.replace(ADD, bytes=None, flops=None)
    assert suspected(free, 0.001, None) == []
    wide = Measurement(time_ns=20e3, low_ns=10e3, high_ns=40e3, calls=9)
    assert floor_suspicions([dataclasses.replace(ADD, measurement=wide)], H200, "float32") == []
    assert floor_suspicions([ADD], H200, "float32") == []  # not measured


def test_hidden_workloads_are_suspected_together_and_not_named() -> None:
    secret = dataclasses.replace(ADD, hidden=True, measurement=exactly(1e3))
    other = dataclasses.replace(secret, name="other", bytes=1e9)
    (found,) = floor_suspicions([secret, other], H200, "float32")
    assert found.reason == "a hidden workload is faster than the physical limit of the device"


def test_between_the_floor_and_the_impossible_is_no_violation() -> None:
    least_ns = (12 * 2**24 - 60e6 - 0.14 * 60e6) / 4.8e12 * 1e9
    half_ns = 6 * 2**24 / 4.8e12 * 1e9
    outputs = {"n16777216": 4.0 * 2**24}
    between = dataclasses.replace(ADD, measurement=exactly((least_ns + half_ns) / 2))
    assert floor_suspicions([between], H200, "float32", outputs)
    assert beats_physics([between], H200, "float32", outputs) == ""
    below = dataclasses.replace(ADD, measurement=exactly(half_ns * 0.99))
    assert "n16777216" in beats_physics([below], H200, "float32", outputs)
    written = dataclasses.replace(below, bytes=50e6)
    assert beats_physics([written], H200, "float32", {"n16777216": 50e6}) == ""


def test_fraction_of_a_peak_is_the_mean_over_public_workloads() -> None:
    peak = Peak(1e12, {"float32": 1e15})
    half = dataclasses.replace(ADD, bytes=1e6, measurement=exactly(2e3))
    eighth = dataclasses.replace(ADD, bytes=1e6, measurement=exactly(8e3))
    secret = dataclasses.replace(half, hidden=True)
    assert fraction([half, eighth, secret, ADD], peak, "float32") == pytest.approx(0.25)
    assert fraction([dataclasses.replace(half, bytes=None)], peak, "float32") is None
    slow = Peak(1e9, {"float32": 1e9})  # of what does no arithmetic there is no rate
    assert floor_ns(Cost(flops=0.0, bytes=8e3, weight=1.0), slow, "int32") == pytest.approx(8e3)
    assert floor_ns(Cost(flops=1.0, bytes=8e3, weight=1.0), slow, "int32") is None
