"""What the coordinator's own waiting says of a claimed time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from gpu_runner.data.evaluation import Measurement
from gpu_runner.data.integrity import Burst
from gpu_runner.data.verdict import Abi, DeviceKind
from gpu_runner.supervisor.outside import (
    MARGINS,
    NullTime,
    at_least,
    at_the_gate,
    beats_clock,
    from_the_start,
    is_blind,
    null_time,
    outside_time,
    typical_slope,
)

GPU = MARGINS[DeviceKind.CUDA, Abi.C]
CPU = MARGINS[DeviceKind.CPU, Abi.C]
NULL = NullTime(
    intercept_ns=200_000, slope_ns=2_000, deviation_ns=4_000, single_ns=40_000, spread_ns=6_000
)


def bursts(of: Callable[[int], float], sizes: tuple[int, ...] = (1, 7, 12, 16)) -> list[Burst]:
    return [Burst(calls=size, held_ns=NULL.at(size) + of(size)) for size in sizes]


def test_bound_is_the_time_of_a_call_where_nothing_disturbs() -> None:
    outside = outside_time(bursts(lambda size: 50_000.0 * size), NULL, GPU)
    assert outside.bound_ns == pytest.approx(50_000)
    assert outside.slope_ns - outside.null_slope_ns == pytest.approx(50_000)
    assert outside.error_ns <= 10_500


@pytest.mark.parametrize("true_ns", [50_000, 200_000, 5e6])
def test_nine_tenths_of_the_true_time_are_too_little(true_ns: float) -> None:
    outside = outside_time(bursts(lambda size: true_ns * size, (13, 15, 16)), NULL, GPU)
    assert beats_clock(0.9 * true_ns, 0, NULL, outside)
    assert not beats_clock(0.97 * true_ns, 0, NULL, outside)


def test_cpu_kernels_that_are_slower_in_bursts_are_judged_by_single_calls() -> None:
    slower = bursts(lambda size: 120_000.0 * size)
    single = NULL.single_ns + 105_000
    outside = outside_time(slower, NULL, CPU, single)
    assert outside.single_ns == pytest.approx(105_000)
    assert not beats_clock(100_000, 0, NULL, outside)
    assert beats_clock(80_000, 0, NULL, outside)


@pytest.mark.parametrize("true_ns", [50_000.0, 200_000.0, 5e6])
def test_the_gate_refuses_nine_tenths_of_a_cpu_kernels_time(true_ns: float) -> None:
    """Processor time alone would let pass half of 50 us: an empty call takes 40 us, or 46."""
    null = replace(NULL, gate_ns=300.0)
    loose = outside_time(bursts(lambda size: true_ns * size), NULL, CPU, NULL.single_ns + true_ns)
    outside = at_the_gate(loose, true_ns + 700, null, CPU)
    assert beats_clock(0.9 * true_ns, 0, null, outside)
    assert not beats_clock(true_ns, 0, null, outside)
    assert not is_blind(outside, CPU)


def test_what_was_done_before_the_gate_counts_still() -> None:
    loose = outside_time(bursts(lambda n: 4e5 * n), NULL, CPU, NULL.single_ns + 4e5)
    outside = at_the_gate(loose, 2_300, replace(NULL, gate_ns=300.0), CPU)
    assert outside.gate_ns == pytest.approx(2_000)
    assert (outside.bound_ns, outside.error_ns) == (loose.bound_ns, loose.error_ns)
    assert beats_clock(2_000, 0, NULL, outside)


def test_an_extension_is_not_accused_for_what_handing_out_takes() -> None:
    margin, null = MARGINS[DeviceKind.CPU, Abi.TORCH], replace(NULL, gate_ns=55_000.0)
    loose = outside_time(bursts(lambda n: 3e4 * n), NULL, margin, NULL.single_ns + 3e4)
    assert not beats_clock(30_000, 0, null, at_the_gate(loose, 93_000, null, margin))
    assert beats_clock(5_000, 0, null, at_the_gate(loose, 85_000, null, margin))


def test_what_an_extension_does_before_the_gate_counts() -> None:
    """Half of 330 us was done while the runner still copied inputs: 300 us without it, or 330."""
    margin = MARGINS[DeviceKind.CPU, Abi.TORCH]
    null = replace(NULL, gate_ns=55_000.0, whole_ns=415_000.0)
    loose = at_the_gate(
        outside_time(bursts(lambda n: 3.3e5 * n), NULL, margin, NULL.single_ns + 2.3e5),
        225_000,
        null,
        margin,
    )
    assert not beats_clock(165_000, 0, null, loose)
    assert beats_clock(165_000, 0, null, from_the_start(loose, 715_000, null, margin))
    assert from_the_start(loose, 715_000, NULL, margin) == loose  # that was not calibrated


def test_an_extension_is_not_accused_for_what_the_runner_does_before_the_gate() -> None:
    margin = MARGINS[DeviceKind.CPU, Abi.TORCH]
    null = replace(NULL, gate_ns=55_000.0, whole_ns=415_000.0)
    loose = outside_time(bursts(lambda n: 3e4 * n), NULL, margin, NULL.single_ns + 3e4)
    assert not beats_clock(30_000, 0, null, from_the_start(loose, 500_000, null, margin))


def test_a_cpu_kernel_whose_calls_scatter_is_not_as_fast_in_every_call_of_a_burst() -> None:
    """Seen of a pool of threads on a busy host: 138 us a call, the fastest alone in 120."""
    slower = bursts(lambda size: 138_000.0 * size)
    single = NULL.single_ns + 145_000
    assert beats_clock(120_000, 0, NULL, outside_time(slower, NULL, CPU, single))
    outside = outside_time(slower, NULL, CPU, single, 30_000)
    assert not beats_clock(120_000, 0, NULL, outside)
    assert beats_clock(100_000, 0, NULL, outside)  # however much they scatter
    rests = outside_time(bursts(lambda n: 4e5 * n), NULL, CPU, NULL.single_ns + 4e5, 6e4)
    assert beats_clock(350_000, 0, NULL, rests)  # it makes them scatter itself


def test_long_cpu_kernels_are_judged_by_single_calls_alone() -> None:
    faster = bursts(lambda size: 800_000.0 * size)
    outside = outside_time(faster, NULL, CPU, NULL.single_ns + 1_000_000)
    assert beats_clock(900_000, 0, NULL, outside)
    assert not beats_clock(980_000, 0, NULL, outside)


def test_cpu_kernels_that_are_faster_in_bursts_are_judged_by_bursts() -> None:
    faster = bursts(lambda size: 80_000.0 * size)
    outside = outside_time(faster, NULL, CPU, NULL.single_ns + 110_000)
    assert not beats_clock(100_000, 0, NULL, outside)
    assert beats_clock(60_000, 0, NULL, outside)


def test_a_busy_host_only_loosens_the_bound_of_other_bursts() -> None:
    late = bursts(lambda size: 50_000.0 * size)
    late[0] = Burst(calls=1, held_ns=9e6)
    late[3] = Burst(calls=16, held_ns=8e7)
    assert outside_time(late, NULL, GPU).bound_ns == pytest.approx(50_000)


def test_padding_small_bursts_flattens_the_slope_but_hides_nothing() -> None:
    padded = bursts(lambda size: 16 * 50_000.0)
    outside = outside_time(padded, NULL, GPU)
    assert outside.slope_ns - outside.null_slope_ns == pytest.approx(0, abs=1)
    assert outside.bound_ns == pytest.approx(50_000)
    assert beats_clock(45_000, 0, NULL, outside)


def test_answering_before_the_work_has_ended_hides_it_in_small_bursts_only() -> None:
    """Their work is over before the coordinator has turned to look, on a busy host in 0.5 ms."""
    early = [
        Burst(calls=5, held_ns=NULL.at(5) + 5_000, large=False),
        *bursts(lambda size: 79_000.0 * size - 500_000, (40, 62)),
    ]
    assert beats_clock(60_000, 0, NULL, outside_time(early, NULL, GPU))
    on_a_cpu = outside_time(early, NULL, CPU, NULL.single_ns + 5_000)
    assert not beats_clock(5_000, 0, NULL, on_a_cpu)


@pytest.mark.parametrize("late_ns", [-300_000, 300_000])
def test_on_a_device_small_bursts_say_nothing(late_ns: float) -> None:
    found = [
        Burst(calls=3, held_ns=NULL.at(3) + 3 * 80_000 + late_ns, large=False),
        *bursts(lambda size: 82_000.0 * size, (40, 62)),
    ]
    outside = outside_time(found, NULL, GPU)
    assert outside.bound_ns == pytest.approx(82_000)
    assert not beats_clock(79_000, 0, NULL, outside)
    assert beats_clock(0.9 * 79_000, 0, NULL, outside)


def test_a_process_that_rests_makes_no_large_burst_vague() -> None:
    """Its calls are long, so that its bursts are cut; of the others' time it says nothing."""
    found = [Burst(calls=1, held_ns=NULL.at(1) + 10_000), *bursts(lambda n: 80_000.0 * n, (40, 62))]
    assert beats_clock(70_000, 0, NULL, outside_time(found, NULL, GPU))
    alone = outside_time(found[:1], NULL, GPU)
    assert not beats_clock(10_000, 0, NULL, alone)


def test_one_large_burst_that_is_not_late_speaks_for_a_kernel() -> None:
    found = bursts(lambda size: 80_000.0 * size + size % 2 * 2e6, (41, 55, 62, 63))
    assert not beats_clock(80_000, 0, NULL, outside_time(found, NULL, GPU))


def test_a_host_that_is_slow_to_launch_is_given_the_outside_time() -> None:
    outside = outside_time(bursts(lambda size: 100_000.0 * size), NULL, GPU)
    assert not beats_clock(60_000, 50_000, NULL, outside)
    claimed = Measurement(time_ns=60_000, low_ns=59_000, high_ns=61_000, calls=9)
    assert at_least(claimed, outside).time_ns == pytest.approx(100_000)
    honest = Measurement(time_ns=99_000, low_ns=98_000, high_ns=101_000, calls=9)
    assert at_least(honest, outside) == honest


def test_a_claim_of_next_to_nothing_is_replaced_without_overflow() -> None:
    outside = outside_time(bursts(lambda size: 100_000.0 * size), NULL, GPU)
    claimed = Measurement(time_ns=5e-324, low_ns=5e-324, high_ns=1e300, calls=9)
    found = at_least(claimed, outside)
    assert 0 < found.low_ns <= found.time_ns <= found.high_ns < 1e7


def test_short_kernels_keep_their_claims() -> None:
    outside = outside_time(bursts(lambda size: 20_000.0 * size), NULL, GPU)
    claimed = Measurement(time_ns=4_000, low_ns=3_900, high_ns=4_100, calls=9)
    assert at_least(claimed, outside) == claimed


def test_null_time_is_not_tilted_by_single_waits() -> None:
    rng = random.Random(1)
    found = [
        Burst(calls=size, held_ns=NULL.at(size) + rng.expovariate(1 / 3_000))
        for size in [*range(1, 17)] * 2
    ]
    found[5] = Burst(calls=6, held_ns=5e6)
    null = null_time(found)
    assert null.slope_ns == pytest.approx(NULL.slope_ns, rel=0.3)
    assert null.at(8) == pytest.approx(NULL.at(8), rel=0.02)
    with pytest.raises(ValueError, match="no burst"):
        null_time([])


def test_slope_needs_two_sizes() -> None:
    assert typical_slope([Burst(calls=2, held_ns=5), Burst(calls=2, held_ns=7)]) == 0


def test_a_torch_kernel_may_be_faster_alone_than_in_bursts() -> None:
    """Its single calls are not precise, so that they can only speak for it."""
    margin = MARGINS[DeviceKind.CPU, Abi.TORCH]
    slower = bursts(lambda size: 1_600_000.0 * size)
    assert beats_clock(1e6, 0.0, NULL, outside_time(slower, NULL, margin))
    alone = outside_time(slower, NULL, margin, NULL.single_ns + 1_050_000)
    assert not beats_clock(1e6, 0.0, NULL, alone)
    assert beats_clock(0.6e6, 0.0, NULL, alone)


def test_a_clock_that_was_calibrated_in_a_bad_moment_is_blind() -> None:
    """Seen of a CPU kernel of 726 us on a busy host: 255 us of error."""
    long, single = bursts(lambda size: 726_000.0 * size), NULL.single_ns + 726_000
    assert not is_blind(outside_time(long, NULL, CPU, single), CPU)
    disturbed = replace(NULL, spread_ns=120_000, deviation_ns=300_000)
    assert is_blind(outside_time(long, disturbed, CPU, single), CPU)
    short, single = bursts(lambda size: 30_000.0 * size), NULL.single_ns + 30_000
    assert not is_blind(outside_time(short, disturbed, CPU, single), CPU)  # nothing to be seen
