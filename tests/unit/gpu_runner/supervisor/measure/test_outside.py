"""What the supervisor's own clock says of a claimed time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from gpu_runner.data.evaluation import Measurement
from gpu_runner.data.integrity import Burst, OutsideTime
from gpu_runner.data.protocol import MARGINS
from gpu_runner.data.verdict import Abi, DeviceKind
from gpu_runner.supervisor.measure.outside import (
    EmptyKernelTime,
    Seen,
    at_least,
    empty_kernel_time,
    host_share_ns,
    is_blind,
    is_contradicted,
    outside_time,
    typical_slope,
)

GPU = MARGINS[DeviceKind.CUDA, Abi.C]
CPU = MARGINS[DeviceKind.CPU, Abi.C]
TORCH = MARGINS[DeviceKind.CPU, Abi.TORCH]
EMPTY = EmptyKernelTime(
    intercept_ns=200_000,
    slope_ns=2_000,
    deviation_ns=4_000,
    single_ns=40_000,
    spread_ns=6_000,
    gate_ns=300,
)


def bursts(of: Callable[[int], float], sizes: tuple[int, ...] = (33, 41, 52, 64)) -> list[Burst]:
    return [Burst(calls=size, held_ns=EMPTY.at(size) + of(size)) for size in sizes]


def on_gpu(
    found: list[Burst], held_ns: float | None = None, empty: EmptyKernelTime = EMPTY
) -> OutsideTime:
    outside = outside_time(DeviceKind.CUDA, Seen(held_ns=held_ns, bursts=found), empty, GPU)
    assert outside is not None
    return outside


def on_cpu(
    cpu_ns: float, gate_ns: float | None = None, empty: EmptyKernelTime = EMPTY
) -> OutsideTime:
    """Of a call that ran so long, and took so long at the gate."""
    seen = Seen(held_ns=empty.single_ns + cpu_ns, gate_ns=gate_ns)
    outside = outside_time(DeviceKind.CPU, seen, empty, CPU)
    assert outside is not None
    return outside


def test_where_nothing_was_seen_there_is_no_bound() -> None:
    assert outside_time(DeviceKind.CUDA, Seen(held_ns=1e6), EMPTY, GPU) is None
    assert outside_time(DeviceKind.CPU, Seen(gate_ns=1e6), EMPTY, CPU) is None


@pytest.mark.parametrize("true_ns", [50_000, 200_000, 5e6])
def test_nine_tenths_of_a_gpu_kernels_time_are_too_little(true_ns: float) -> None:
    outside = on_gpu(bursts(lambda size: true_ns * size))
    assert outside.bound_ns == pytest.approx(true_ns)
    assert is_contradicted(0.9 * true_ns, outside)
    assert not is_contradicted(0.97 * true_ns, outside)


@pytest.mark.parametrize("true_ns", [50_000.0, 200_000.0, 5e6])
def test_the_gate_sees_through_nine_tenths_of_a_cpu_kernels_time(true_ns: float) -> None:
    """Processor time alone would let pass half of 50 us: an empty call takes 40 us, or 46."""
    outside = on_cpu(true_ns, true_ns + 700)
    assert is_contradicted(0.9 * true_ns, outside)
    assert not is_contradicted(true_ns, outside)
    assert not is_blind(outside, CPU)
    before = on_cpu(4e5, 2_300)  # what was done before the gate counts still
    assert before.gate_ns == pytest.approx(2_000)
    assert before.bound_ns == before.cpu_ns == pytest.approx(4e5)
    assert is_contradicted(2_000, before)


def test_a_torch_extension_on_a_cpu_is_bounded_by_processor_time_alone() -> None:
    seen = Seen(held_ns=EMPTY.single_ns + 1e6)
    outside = outside_time(DeviceKind.CPU, seen, EMPTY, TORCH)
    assert outside is not None
    assert outside.gate_ns is None
    assert is_contradicted(8e5, outside)
    assert not is_contradicted(9.1e5, outside)
    short = outside_time(DeviceKind.CPU, Seen(held_ns=EMPTY.single_ns + 1.9e4), EMPTY, TORCH)
    assert short is not None
    assert not is_contradicted(1.0, short)


def test_a_busy_host_only_loosens_the_bound_of_other_bursts() -> None:
    late = bursts(lambda size: 50_000.0 * size)
    late[0] = Burst(calls=33, held_ns=9e7)
    late[3] = Burst(calls=64, held_ns=8e7)
    assert on_gpu(late).bound_ns == pytest.approx(50_000)
    # Nor does a process that rests: its calls are long, so that its bursts are cut.
    resting = Burst(calls=1, held_ns=EMPTY.at(1) + 10_000)
    assert is_contradicted(70_000, on_gpu([resting, *bursts(lambda n: 80_000.0 * n, (40, 62))]))
    assert not is_contradicted(10_000, on_gpu([resting]))
    slower = bursts(lambda size: 120_000.0 * size)  # it may be faster alone than in bursts
    assert is_contradicted(101_000, on_gpu(slower))
    assert not is_contradicted(101_000, on_gpu(slower, EMPTY.single_ns + 98_000))


def test_answering_before_the_work_has_ended_hides_it_in_small_bursts_only() -> None:
    """Their work is over before the supervisor has turned to look, on a busy host in 0.5 ms."""
    early = [
        Burst(calls=5, held_ns=EMPTY.at(5) + 5_000, large=False),
        *bursts(lambda size: 79_000.0 * size - 500_000, (40, 62)),
    ]
    assert is_contradicted(60_000, on_gpu(early))


@pytest.mark.parametrize("late_ns", [-300_000, 300_000])
def test_small_bursts_say_nothing(late_ns: float) -> None:
    found = [
        Burst(calls=3, held_ns=EMPTY.at(3) + 3 * 80_000 + late_ns, large=False),
        *bursts(lambda size: 82_000.0 * size, (40, 62)),
    ]
    outside = on_gpu(found)
    assert outside.bound_ns == pytest.approx(82_000)
    assert not is_contradicted(79_000, outside)
    assert is_contradicted(0.9 * 79_000, outside)


def test_single_calls_on_a_noisy_host_hide_no_more_than_a_cache_and_a_host_can() -> None:
    """Empty calls took 0.3 ms when the clock was calibrated, and less while the kernel ran."""
    noisy = replace(EMPTY, single_ns=300_000, spread_ns=20_000, host_ns=5_000)
    margin = replace(GPU, drain_ns=20_000)

    def bound(host_ns: float) -> float:
        found = bursts(lambda size: 120_000.0 * size)
        seen = Seen(held_ns=200_000, bursts=found, host_ns=host_ns)
        outside = outside_time(DeviceKind.CUDA, seen, noisy, margin)
        assert outside is not None
        return outside.bound_ns

    assert bound(5_000) == pytest.approx(100_000)
    assert bound(35_000) == pytest.approx(70_000)
    assert bound(500_000) == pytest.approx(0)  # a head start hides no more than its length


def claim(time_ns: float, low_ns: float = 0.0, high_ns: float = 0.0) -> Measurement:
    return Measurement(
        time_ns=time_ns, low_ns=low_ns or time_ns, high_ns=high_ns or time_ns, calls=9
    )


def test_a_claim_that_is_contradicted_is_raised_to_what_was_seen() -> None:
    outside = on_gpu(bursts(lambda size: 100_000.0 * size))
    raised = at_least(claim(60_000, 59_000, 61_000), outside)
    assert raised.time_ns == pytest.approx(100_000)
    assert raised.low_ns == pytest.approx(98_333, rel=1e-4)
    honest = claim(99_000)
    assert at_least(honest, outside) == honest
    short = on_gpu(bursts(lambda size: 20_000.0 * size))
    assert at_least(claim(4_000), short).time_ns == pytest.approx(20_000)
    assert at_least(claim(4_000), short, host_ns=17_000) == claim(4_000)
    found = at_least(claim(5e-324, 5e-324, 1e300), outside)  # without overflow
    assert 0 < found.low_ns <= found.time_ns <= found.high_ns < 1e7
    # A host that is slow to launch explains a short kernel's bursts alone.
    assert host_share_ns(18_000, EMPTY, short) == 18_000
    assert host_share_ns(18_000, replace(EMPTY, host_ns=20_000.0), short) == 0
    assert host_share_ns(50_000, EMPTY, outside) == 0


def test_empty_kernel_time_is_not_tilted_by_single_waits() -> None:
    rng = random.Random(1)
    found = [
        Burst(calls=size, held_ns=EMPTY.at(size) + rng.expovariate(1 / 3_000))
        for size in [*range(1, 17)] * 2
    ]
    found[5] = Burst(calls=6, held_ns=5e6)
    empty = empty_kernel_time(found)
    assert empty.slope_ns == pytest.approx(EMPTY.slope_ns, rel=0.3)
    assert empty.at(8) == pytest.approx(EMPTY.at(8), rel=0.02)
    assert empty_kernel_time([], single_ns=(4.0, 5.0, 9.0)).single_ns == 4.0  # on a CPU
    assert typical_slope([Burst(calls=2, held_ns=5), Burst(calls=2, held_ns=7)]) == 0


def test_a_clock_that_was_calibrated_in_a_bad_moment_is_blind() -> None:
    """Seen of a CPU kernel of 726 us on a busy host: 255 us of error."""
    assert not is_blind(on_cpu(726_000), CPU)
    disturbed = replace(EMPTY, spread_ns=120_000)
    assert is_blind(on_cpu(726_000, empty=disturbed), CPU)
    assert not is_blind(on_cpu(30_000, empty=disturbed), CPU)  # nothing to be seen
