"""Numbers from facts: speedups, floors, headline means and noise."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_runner.data.evaluation import (
    EvaluationResult,
    Measurement,
    ProcessRun,
    WorkloadResult,
)
from gpu_runner.data.integrity import Burst, Check
from gpu_runner.data.scores import summary, with_baselines
from gpu_runner.data.task import Cost, Task, TaskFormat, Work, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Mode, Verdict
from gpu_runner.supervisor.device.device import Peak
from gpu_runner.supervisor.device.floor import (
    beats_physics,
    floor_ns,
    floor_suspicions,
    fraction,
    possible_rate,
)
from gpu_runner.supervisor.judge import (
    Facts,
    clock_suspicions,
    luck_suspicions,
    noisiest,
    workload_result,
)
from gpu_runner.supervisor.measure.outside import MARGINS, EmptyKernelTime, is_contradicted

PEAK = Peak(bytes_per_s=1e9, flops={"float32": 1e9})
SMALL = Workload(name="small", parameters={"N": 1000})
LARGE = Workload(name="large", parameters={"N": 3000})
SECRET = Workload(name="secret", parameters={"N": 7}, hidden=True)
TASK = Task(
    name="t",
    title="T",
    format=TaskFormat.KBENCH,
    abi=Abi.C,
    workloads=(SMALL, LARGE, SECRET),
    files={},
    signature="void f(float* out, const float* in, int N)",
    work={Direction.FORWARD: Work(flops="N", bytes="8 * N", weight="N")},
)


def exactly(time_ns: float) -> Measurement:
    return Measurement(time_ns=time_ns, low_ns=time_ns, high_ns=time_ns, calls=1)


def facts(time_ns: float, **baselines: float) -> Facts:
    run = ProcessRun(process=0, times_ns=(time_ns,) * 9, seeds=(1,) * 9, verified=(0,))
    return Facts(
        DeviceKind.CUDA, runs=[run], baselines={k: exactly(v) for k, v in baselines.items()}
    )


def test_speedup_is_against_each_baseline_and_against_the_best_of_them() -> None:
    result = workload_result(
        TASK, SMALL, Direction.FORWARD, facts(100.0, eager=400.0, compiled=200.0), PEAK
    )
    assert result.speedups == {"eager": 4.0, "compiled": 2.0, "best": 2.0}
    assert result.floor_ns == pytest.approx(8000.0)


def test_headline_takes_public_workloads_and_weighs_the_score_by_work() -> None:
    results = [
        workload_result(TASK, SMALL, Direction.FORWARD, facts(100.0, eager=100.0), PEAK),
        workload_result(TASK, LARGE, Direction.FORWARD, facts(100.0, eager=400.0), PEAK),
        workload_result(TASK, SECRET, Direction.FORWARD, facts(1.0, eager=9.0), PEAK),
    ]
    found = summary(results)
    assert found["latency_ns"] == pytest.approx(100.0)
    assert found["speedups"]["best"] == pytest.approx(2.0)
    assert found["hidden_speedups"]["eager"] == pytest.approx(9.0)
    assert found["score"] == pytest.approx((1000 * 1 + 3000 * 4) / 4000)


def test_baseline_that_one_workload_lacks_has_no_mean() -> None:
    results = [
        workload_result(TASK, SMALL, Direction.FORWARD, facts(10.0, eager=20.0), None),
        workload_result(TASK, LARGE, Direction.FORWARD, facts(10.0), None),
    ]
    found = summary(results)
    assert found["speedups"] == {}
    assert found["score"] is None


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


@pytest.mark.parametrize(
    ("slow_ns", "every", "suspicious"),
    [(210_000.0, 20, True), (160_000.0, 20, False), (400_000.0, 4, False)],
    ids=["rests", "has a neighbour", "varies"],
)
def test_a_kernel_with_few_fast_calls_is_suspicious(
    slow_ns: float, every: int, suspicious: bool
) -> None:
    times = tuple(100_000.0 if n % every == 0 else slow_ns for n in range(60))
    runs = [ProcessRun(process=p, times_ns=times, seeds=(), verified=()) for p in range(3)]
    result = workload_result(TASK, SMALL, Direction.FORWARD, Facts(DeviceKind.CPU, runs=runs), None)
    found = luck_suspicions([result])
    assert [suspicion.check for suspicion in found] == [Check.LUCK] * suspicious


def test_noise_below_the_clocks_resolution_is_none() -> None:
    result = workload_result(TASK, SMALL, Direction.FORWARD, facts(100.0), None)
    tight = Measurement(time_ns=500.0, low_ns=450.0, high_ns=550.0, calls=9)
    loose = Measurement(time_ns=5000.0, low_ns=4000.0, high_ns=6000.0, calls=9)
    assert noisiest([dataclasses.replace(result, measurement=tight)], 100.0) == ("small", 0.0)
    assert noisiest([dataclasses.replace(result, measurement=loose)], 100.0) == ("small", 0.2)


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
    assert reason.startswith("n16777216 took 26.59 us, less than")
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


def test_what_does_no_arithmetic_has_a_floor_without_a_rate() -> None:
    peak = Peak(1e9, {"float32": 1e9})
    assert floor_ns(Cost(flops=0.0, bytes=8e3, weight=1.0), peak, "int32") == pytest.approx(8e3)
    assert floor_ns(Cost(flops=1.0, bytes=8e3, weight=1.0), peak, "int32") is None


def test_fraction_of_a_peak_is_the_mean_over_public_workloads() -> None:
    peak = Peak(1e12, {"float32": 1e15})
    half = dataclasses.replace(ADD, bytes=1e6, measurement=exactly(2e3))
    eighth = dataclasses.replace(ADD, bytes=1e6, measurement=exactly(8e3))
    secret = dataclasses.replace(half, hidden=True)
    assert fraction([half, eighth, secret, ADD], peak, "float32") == pytest.approx(0.25)
    assert fraction([dataclasses.replace(half, bytes=None)], peak, "float32") is None


def test_processes_of_different_speed_do_not_contradict_themselves() -> None:
    """Most calls were in slow processes, but the claim is that of the typical process."""
    empty = EmptyKernelTime(
        intercept_ns=0, slope_ns=0, deviation_ns=0, single_ns=4e4, spread_ns=2e3
    )
    runs = [
        ProcessRun(
            process=number,
            times_ns=(time_ns,) * calls,
            seeds=(1,) * calls,
            verified=(0,),
            held_ns=(empty.single_ns + time_ns,) * calls,
        )
        for number, (time_ns, calls) in enumerate([(0.9e6, 20), (1e6, 20), (1.3e6, 99)])
    ]
    known = Facts(DeviceKind.CPU, runs=runs, empty=empty, margin=MARGINS[DeviceKind.CPU, Abi.C])
    outside = workload_result(TASK, SMALL, Direction.FORWARD, known, None).outside
    assert outside is not None
    assert outside.cpu_ns == pytest.approx(0.95e6)
    assert not is_contradicted(0.95e6, outside)
    assert is_contradicted(0.9e6, outside)


def test_a_gpu_claim_is_held_against_bursts() -> None:
    empty = EmptyKernelTime(intercept_ns=2e5, slope_ns=2e3, deviation_ns=4e3)
    burst = Burst(calls=64, held_ns=empty.at(64) + 64 * 1e5)
    run = ProcessRun(process=0, times_ns=(5e4,) * 9, seeds=(1,) * 9, verified=(0,), bursts=(burst,))
    margin = MARGINS[DeviceKind.CUDA, Abi.C]
    known = Facts(DeviceKind.CUDA, runs=[run], empty=empty, margin=margin)
    found = workload_result(TASK, SMALL, Direction.FORWARD, known, None)
    assert found.measurement is not None
    assert found.measurement.time_ns == pytest.approx(1e5)
    assert found.claimed_ns == 5e4
    assert [each.check for each in clock_suspicions([found])] == [Check.CLOCK]


def test_baselines_that_join_later_change_all_that_follows_from_them() -> None:
    workloads = tuple(
        workload_result(TASK, each, Direction.FORWARD, facts(100.0, eager=400.0), PEAK)
        for each in (SMALL, LARGE)
    )
    result = EvaluationResult(
        evaluation_id="1",
        attempt=1,
        verdict=Verdict.CORRECT,
        reason="",
        mode=Mode.RANKED,
        device="cpu",
        task="t",
        task_digest="d",
        solution_digest="s",
        workloads=workloads,
        pending_baselines=("compiled",),
        **summary(workloads),
    )
    assert result.speedups == {"eager": 4.0, "best": 4.0}
    found = with_baselines(
        result, {name: {"compiled": exactly(200.0)} for name in ("small", "large")}
    )
    assert found.speedups == pytest.approx({"eager": 4.0, "compiled": 2.0, "best": 2.0})
    assert found.score == pytest.approx(2.0)
    assert found.latency_ns == result.latency_ns
    assert found.pending_baselines == ()
