"""What counts of a call: the time that its process claims, or what was seen of it at the gate."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpu_runner.data.evaluation import ProcessRun, WorkloadResult
from gpu_runner.data.integrity import Check
from gpu_runner.data.protocol import MARGINS
from gpu_runner.data.verdict import Abi, DeviceKind, Direction
from gpu_runner.supervisor.judge import Facts, clock_suspicions, luck_suspicions, workload_result
from gpu_runner.supervisor.measure.outside import EmptyKernelTime, is_contradicted
from tests.unit.gpu_runner.supervisor.test_judge import SMALL, TASK

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
