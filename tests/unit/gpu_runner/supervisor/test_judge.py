"""Numbers from facts: what counts of a call, speedups, floors, headline means and noise."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpu_runner.data.evaluation import EvaluationResult, Measurement, ProcessRun, WorkloadResult
from gpu_runner.data.integrity import Burst, Check
from gpu_runner.data.protocol import MARGINS
from gpu_runner.data.scores import summary, with_baselines
from gpu_runner.data.task import Task, TaskFormat, Work, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Mode, Verdict
from gpu_runner.supervisor.device.device import Peak
from gpu_runner.supervisor.judge import (
    Facts,
    clock_suspicions,
    luck_suspicions,
    noise_of_unlisted,
    noisiest,
    workload_result,
)
from gpu_runner.supervisor.measure.outside import EmptyKernelTime, is_contradicted

PEAK = Peak(bytes_per_s=1e9, flops={"float32": 1e9})
SMALL = Workload(name="small", parameters={"N": 1000})
LARGE = Workload(name="large", parameters={"N": 3000})
SECRET = Workload(name="secret", parameters={"N": 7}, unlisted=True)
CHECK = Workload(name="check", parameters={"N": 1}, hidden=True)
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


def judged(workload: Workload, known: Facts, peak: Peak | None = None) -> WorkloadResult:
    return workload_result(TASK, workload, Direction.FORWARD, known, peak)


def test_speedup_is_against_each_baseline_and_against_the_best_of_them() -> None:
    result = judged(SMALL, facts(100.0, eager=400.0, compiled=200.0), PEAK)
    assert result.speedups == {"eager": 4.0, "compiled": 2.0, "best": 2.0}
    assert result.floor_ns == pytest.approx(8000.0)


def test_headline_takes_public_workloads_and_weighs_p_by_work() -> None:
    results = [
        judged(SMALL, facts(100.0, eager=100.0), PEAK),
        judged(LARGE, facts(100.0, eager=400.0), PEAK),
        judged(SECRET, facts(1.0, eager=9.0), PEAK),
        judged(CHECK, facts(1.0, eager=999.0), PEAK),
    ]
    assert [each.measurement is None for each in results] == [False, False, False, True]
    found = summary(results)
    assert found["latency_ns"] == pytest.approx(100.0)
    assert found["speedups"]["best"] == pytest.approx(2.0)
    assert found["unlisted_speedups"]["eager"] == pytest.approx(9.0)
    assert found["p_score"] == pytest.approx((1000 * 1 + 3000 * 4) / 4000)


def test_baseline_that_one_workload_lacks_has_no_mean() -> None:
    results = [judged(SMALL, facts(10.0, eager=20.0)), judged(LARGE, facts(10.0))]
    found = summary(results)
    assert found["speedups"] == {}
    assert found["p_score"] is None


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
    result = judged(SMALL, Facts(DeviceKind.CPU, runs=runs))
    found = luck_suspicions([result])
    assert [suspicion.check for suspicion in found] == [Check.LUCK] * suspicious


@pytest.mark.parametrize(("late_ns", "suspicious"), [(0, True), (310_000, False)])
def test_spinning_while_the_supervisor_waits_is_no_luck(late_ns: int, suspicious: bool) -> None:
    run = ProcessRun(
        process=0,
        times_ns=(100_000.0,) * 12,
        seeds=(),
        verified=(),
        held_ns=(110_000.0, *(400_000.0,) * 11),
        late_ns=(0, *(late_ns,) * 11),
    )
    known = Facts(DeviceKind.CPU, runs=[run] * 3)
    result = judged(SMALL, known)
    assert bool(luck_suspicions([result])) is suspicious


def test_noise_below_the_clocks_resolution_is_none() -> None:
    result = judged(SMALL, facts(100.0))
    tight = Measurement(time_ns=500.0, low_ns=450.0, high_ns=550.0, calls=9)
    loose = Measurement(time_ns=5000.0, low_ns=4000.0, high_ns=6000.0, calls=9)
    assert noisiest([dataclasses.replace(result, measurement=tight)], 100.0) == ("small", 0.0)
    assert noisiest([dataclasses.replace(result, measurement=loose)], 100.0) == ("small", 0.2)
    hidden = [dataclasses.replace(result, measurement=each, hidden=True) for each in (loose, tight)]
    assert noise_of_unlisted(hidden, 100.0) == pytest.approx(0.1), "of the mean over both"
    assert noise_of_unlisted([result], 100.0) == 0.0


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
    outside = judged(SMALL, known).outside
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
    found = judged(SMALL, known)
    assert found.measurement is not None
    assert found.measurement.time_ns == pytest.approx(1e5)
    assert found.claimed_ns == 5e4
    assert [each.check for each in clock_suspicions([found])] == [Check.CLOCK]


def test_many_launches_on_a_slow_host_are_raised_and_no_suspect() -> None:
    """As twelve launches may be: 28 us on the device, 66 us in a burst that waits for its host."""
    empty = EmptyKernelTime(intercept_ns=2e5, slope_ns=2e3, deviation_ns=4e3, host_ns=6e3)
    burst = Burst(calls=64, held_ns=empty.at(64) + 64 * 6.6e4)
    margin = MARGINS[DeviceKind.CUDA, Abi.C]
    for host_ns, checks in ((7e4, []), (8e3, [Check.CLOCK])):
        run = ProcessRun(
            process=0,
            times_ns=(2.8e4,) * 9,
            seeds=(1,) * 9,
            verified=(0,),
            bursts=(burst,),
            host_ns=host_ns,
        )
        known = Facts(DeviceKind.CUDA, runs=[run], empty=empty, margin=margin)
        found = judged(SMALL, known)
        assert [each.check for each in clock_suspicions([found])] == checks


def test_baselines_that_join_later_change_all_that_follows_from_them() -> None:
    workloads = tuple(judged(each, facts(100.0, eager=400.0), PEAK) for each in (SMALL, LARGE))
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
    assert found.p_score == pytest.approx(2.0)
    assert found.latency_ns == result.latency_ns
    assert found.pending_baselines == ()


GATED = EmptyKernelTime(intercept_ns=0, slope_ns=0, deviation_ns=0, single_ns=4e4, gate_ns=300.0)


def gated_run(
    times_ns: Sequence[float],
    gate_ns: Sequence[float],
    held_ns: Sequence[float] = (),
    threads: int = 1,
) -> ProcessRun:
    held = held_ns or [GATED.single_ns + time_ns for time_ns in times_ns]
    return ProcessRun(
        process=0,
        times_ns=tuple(times_ns),
        seeds=tuple(range(len(times_ns))),
        verified=(0,),
        gate_ns=tuple(gate_ns),
        held_ns=tuple(held),
        threads=threads,
    )


def gated(*runs: ProcessRun, abi: Abi = Abi.C) -> WorkloadResult:
    margin = MARGINS[DeviceKind.CPU, abi]
    known = Facts(DeviceKind.CPU, runs=list(runs), empty=GATED, margin=margin)
    return workload_result(TASK, SMALL, Direction.FORWARD, known, None)


def time_of(result: WorkloadResult) -> float:
    assert result.measurement is not None
    return result.measurement.time_ns


@pytest.mark.parametrize("claimed_ns", [5.3e5, 1.0])
def test_a_call_counts_as_what_was_seen_of_it_at_least(claimed_ns: float) -> None:
    """Whether its end was seen too late or its claim is forged: it gains no more than the error."""
    claims = (6.0e5, claimed_ns, 6.1e5, 6.2e5)
    found = gated(gated_run(claims, (6.003e5, 6.4e5, 6.103e5, 6.203e5), [6.4e5] * 4))
    assert time_of(found) == 6.0e5
    assert found.claimed_ns == claimed_ns
    nearer = gated(gated_run(claims, (6.003e5, 5.9e5, 6.103e5, 6.203e5), [6.3e5] * 4))
    assert time_of(nearer) == pytest.approx(0.98 * (5.9e5 - 300) - 1_030)
    for result in (found, nearer):
        assert result.outside is not None
        assert not is_contradicted(time_of(result), result.outside)
        assert result.processes[0].times_ns == claims


def test_what_counts_of_several_processes_contradicts_none_of_them() -> None:
    """Times and bounds are interpolated between processes, each with roundings of its own."""
    rng = random.Random(3)
    for _ in range(50):
        runs = [
            gated_run((1.0, 2e6, 2e6), (rng.uniform(5e5, 9e5), 2.1e6, 2.1e6), [5e5] * 3)
            for _ in range(rng.choice([3, 6]))
        ]
        found = gated(*runs)
        assert found.outside is not None
        assert not is_contradicted(time_of(found), found.outside)


def test_an_honest_claim_stands() -> None:
    found = gated(gated_run([6e5] * 4, [6.003e5] * 4))
    assert time_of(found) == 6e5
    assert found.claimed_ns is None
    assert clock_suspicions([found]) == []


@pytest.mark.parametrize(("claim_ns", "suspicious"), [(5.4e5, False), (3e5, True)])
def test_a_forged_claim_gains_nothing_and_a_gross_one_is_for_a_person(
    claim_ns: float, suspicious: bool
) -> None:
    found = gated(gated_run([claim_ns] * 4, [6.003e5] * 4, [6.4e5] * 4))
    assert time_of(found) == pytest.approx(0.98 * 6e5 - 1_030)
    assert found.claimed_ns == claim_ns
    assert [each.check for each in clock_suspicions([found])] == [Check.CLOCK] * suspicious


@pytest.mark.parametrize(("kept_ns", "suspicious"), [(0, True), (2e6, True), (22e6, False)])
def test_who_was_kept_from_a_processor_is_raised_and_no_suspect(
    kept_ns: float, suspicious: bool
) -> None:
    """Seen of an honest softmax beside 14 busy processes on two cores: 1.03 ms became 22.97 ms."""
    run = gated_run([1.03e6] * 3, [2.297e7] * 3, [1.2e6] * 3)
    found = gated(replace(run, kept_ns=(int(kept_ns),) * 3, late_ns=(0,) * 3))
    assert time_of(found) > 2.2e7
    assert [each.check for each in clock_suspicions([found])] == [Check.CLOCK] * suspicious


def test_work_before_the_gate_is_raised_to_the_processor_time() -> None:
    found = gated(gated_run([1e4] * 4, [1.03e4] * 4, [4e4 + 6e5] * 4))
    assert time_of(found) == pytest.approx(6e5)
    assert [each.check for each in clock_suspicions([found])] == [Check.CLOCK]


def test_a_team_that_spins_while_the_supervisor_waits_is_raised_and_no_suspect() -> None:
    """Seen on a busy host with two threads: 0.69 ms by the calls, 3.05 ms of processor time."""
    run = gated_run([6.9e5] * 4, [6.93e5] * 4, [4e4 + 3.05e6] * 4)
    found = gated(replace(run, late_ns=(2_400_000,) * 4))
    assert time_of(found) > 2.9e6
    assert clock_suspicions([found]) == []
    assert clock_suspicions([gated(run)]) != []


def test_a_team_of_many_threads_is_slow_and_no_suspect() -> None:
    """Seen of 64 threads on one processor: 262 us at the gate, 633 us of processor time."""
    found = gated(gated_run([2.62e5] * 4, [2.623e5] * 4, [4e4 + 6.33e5] * 4, threads=65))
    assert time_of(found) == pytest.approx(6.33e5)
    assert clock_suspicions([found]) == []
    few = gated(gated_run([2.62e5] * 4, [2.623e5] * 4, [4e4 + 6.33e5] * 4, threads=8))
    assert clock_suspicions([few]) != []


def test_a_process_without_a_gate_silences_it() -> None:
    """The claim is of all processes; the gate's least time is of those that passed it."""
    found = gated(gated_run((3e5,), (3.005e5,)), gated_run((5e4,), ()))
    assert found.outside is not None
    assert found.outside.gate_ns is None


@pytest.mark.parametrize(("calls", "suspicions"), [(1, 0), (2, 1), (9, 1), (20, 1)])
def test_luck_is_asked_of_processor_time_too(calls: int, suspicions: int) -> None:
    """Slow calls may claim to be as fast as the one that is: only the fastest must be true."""
    run = gated_run([1e5] * calls, [1.003e5] * calls, [1.4e5, *[4.4e5] * (calls - 1)])
    assert len(luck_suspicions([gated(run, run, run)])) == suspicions


def test_a_supervisor_that_was_kept_away_makes_nobody_lucky() -> None:
    """It sees ends too late; processor time says that nothing was wrong."""
    run = gated_run([5e4] * 20, [5.03e4, *[1.5e5] * 19])
    assert luck_suspicions([gated(run, run, run)]) == []


def test_what_a_call_takes_beside_its_kernel_scatters() -> None:
    run = gated_run([1e3] * 20, [1.3e3] * 20, [4.1e4, *[7e4] * 19])
    assert luck_suspicions([gated(run, run, run)]) == []
