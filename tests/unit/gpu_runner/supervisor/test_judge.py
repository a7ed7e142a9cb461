"""Numbers from facts: speedups, floors, headline means and noise."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_runner.data.evaluation import Measurement, ProcessRun
from gpu_runner.data.task import Task, TaskFormat, Work, Workload
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.supervisor.device import Peak
from gpu_runner.supervisor.judge import Facts, beats_physics, noisiest, summary, workload_result

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


def exactly(median_ns: float) -> Measurement:
    return Measurement(median_ns=median_ns, low_ns=median_ns, high_ns=median_ns, calls=1)


def facts(time_ns: float, **baselines: float) -> Facts:
    run = ProcessRun(process=0, times_ns=(time_ns,) * 9, seeds=(1,) * 9, verified=(0,))
    return Facts(runs=[run], baselines={k: exactly(v) for k, v in baselines.items()})


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


def test_noise_below_the_clocks_resolution_is_none() -> None:
    result = workload_result(TASK, SMALL, Direction.FORWARD, facts(100.0), None)
    tight = Measurement(median_ns=500.0, low_ns=450.0, high_ns=550.0, calls=9)
    loose = Measurement(median_ns=5000.0, low_ns=4000.0, high_ns=6000.0, calls=9)
    assert noisiest([dataclasses.replace(result, measurement=tight)]) == ("small", 0.0)
    assert noisiest([dataclasses.replace(result, measurement=loose)]) == ("small", 0.2)
