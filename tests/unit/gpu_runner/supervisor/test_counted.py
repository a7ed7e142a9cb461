"""What counts of a call: the time that its process claims, or what was seen of it at the gate."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from gpu_runner.data.evaluation import ProcessRun, WorkloadResult
from gpu_runner.data.integrity import Burst, Check
from gpu_runner.data.verdict import Abi, DeviceKind, Direction
from gpu_runner.supervisor.judge import Facts, luck_suspicions, workload_result
from gpu_runner.supervisor.outside import MARGINS, NullTime, beats_clock
from gpu_runner.supervisor.statistics import ESTIMATORS
from tests.unit.gpu_runner.supervisor.test_judge import SMALL, TASK

FASTEST = ESTIMATORS[DeviceKind.CPU]
GATED = NullTime(intercept_ns=1e5, slope_ns=1e3, deviation_ns=1e3, gate_ns=300.0, whole_ns=4e5)


def gated_run(
    times_ns: Sequence[float],
    gate_ns: Sequence[float],
    whole_ns: Sequence[float | None] = (),
    late_ns: Sequence[int] = (),
) -> ProcessRun:
    held_ns = tuple(GATED.single_ns + time_ns for time_ns in times_ns)
    burst = Burst(calls=8, held_ns=GATED.at(8) + 8 * 3e4)
    return ProcessRun(
        process=0,
        times_ns=tuple(times_ns),
        seeds=tuple(range(len(times_ns))),
        verified=(0,),
        gate_ns=tuple(gate_ns),
        whole_ns=tuple(whole_ns),
        held_ns=held_ns,
        late_ns=tuple(late_ns),
        bursts=(burst,),
    )


def gated(abi: Abi, *runs: ProcessRun) -> WorkloadResult:
    known = Facts(FASTEST, runs=list(runs), null=GATED, margin=MARGINS[DeviceKind.CPU, abi])
    return workload_result(TASK, SMALL, Direction.FORWARD, known, None)


@pytest.mark.parametrize("claimed_ns", [5.3e5, 1.0])
def test_a_call_counts_as_what_was_seen_of_it_at_least(claimed_ns: float) -> None:
    """Whether its end was seen too late or its claim is forged: it gains no more than the error."""
    claims = (6.0e5, claimed_ns, 6.1e5, 6.2e5)
    found = gated(Abi.C, gated_run(claims, (6.003e5, 6.4e5, 6.103e5, 6.203e5)))
    assert found.measurement is not None
    assert found.outside is not None
    assert found.measurement.time_ns == 6.0e5
    nearer = gated(Abi.C, gated_run(claims, (6.003e5, 5.9e5, 6.103e5, 6.203e5)))
    assert nearer.measurement is not None
    assert nearer.measurement.time_ns == pytest.approx(0.98 * (5.9e5 - 300) - 1_030)
    for result in (found, nearer):
        assert result.measurement is not None
        assert result.outside is not None
        assert not beats_clock(result.measurement.time_ns, 0.0, GATED, result.outside)
        assert result.processes[0].times_ns == claims


def test_what_counts_of_several_processes_contradicts_none_of_them() -> None:
    """Times and bounds are interpolated between processes, each with roundings of its own."""
    rng = random.Random(3)
    for _ in range(50):
        runs = [
            gated_run((1.0, 2e6, 2e6), (rng.uniform(5e5, 9e5), 2.1e6, 2.1e6))
            for _ in range(rng.choice([3, 6, 12]))
        ]
        found = gated(Abi.C, *runs)
        assert found.measurement is not None
        assert found.outside is not None
        assert not beats_clock(found.measurement.time_ns, 0.0, GATED, found.outside)


@pytest.mark.parametrize("lies", [2, 3, 4])
def test_a_process_whose_calls_mostly_disagree_with_the_clock_lies(lies: int) -> None:
    claims = [5.4e5] * lies + [6e5] * (4 - lies)
    found = gated(Abi.C, gated_run(claims, [6.003e5] * 4))
    assert found.measurement is not None
    assert found.outside is not None
    assert beats_clock(5.4e5, 0.0, GATED, found.outside)


def test_a_coordinator_without_a_processor_accuses_nobody_and_gives_nothing_away() -> None:
    claims, late_ns = [5.4e5] * 4, [700_000, 600_000, 0, 650_000]
    found = gated(Abi.C, gated_run(claims, [6.003e5] * 4, late_ns=late_ns))
    assert found.measurement is not None
    assert found.outside is not None
    assert found.measurement.time_ns == pytest.approx(0.98 * 6e5 - 1_030)
    assert not beats_clock(found.measurement.time_ns, 0.0, GATED, found.outside)


@pytest.mark.parametrize(("fastest_is_alone", "bound_ns"), [(True, 5e5), (False, None)])
def test_what_calls_took_that_did_not_wait_does_not_bound_one_that_did(
    *, fastest_is_alone: bool, bound_ns: float | None
) -> None:
    whole_ns = (9e5 if fastest_is_alone else None, 1.1e6, 1.2e6)
    found = gated(Abi.TORCH, gated_run((5e5, 7e5, 8e5), (5.003e5, 7.003e5, 8.003e5), whole_ns))
    assert found.outside is not None
    assert found.outside.whole_ns == bound_ns


def test_luck_is_asked_of_what_the_coordinator_saw() -> None:
    """Slow calls may claim to be as fast as the one that is: only the fastest must be true."""
    slow = gated_run([5e4] * 20, [5.03e4, *[1.5e5] * 19])
    [suspicion] = luck_suspicions([gated(Abi.C, slow, slow, slow)])
    assert suspicion.check is Check.LUCK


@pytest.mark.parametrize(("calls", "suspicions"), [(1, 0), (2, 1), (9, 1)])
def test_few_calls_are_no_way_around_luck(calls: int, suspicions: int) -> None:
    run = gated_run([5e4] * calls, [5.03e4, *[1.5e5] * (calls - 1)])
    assert len(luck_suspicions([gated(Abi.C, run, run, run)])) == suspicions


def test_a_coordinator_that_was_kept_away_makes_nobody_lucky() -> None:
    run = gated_run([5e4] * 20, [5.03e4, *[1.5e5] * 19], late_ns=[0, *[100_000] * 19])
    assert luck_suspicions([gated(Abi.C, run, run, run)]) == []
