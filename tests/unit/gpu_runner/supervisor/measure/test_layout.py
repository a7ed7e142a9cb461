"""How calls are laid out and released, whose turn it is, and when it is enough."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gpu_runner.data.integrity import Burst
from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import MOST_BURST_CALLS, PLANS
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.device.device import DeviceError
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.arena import Poison
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.burst_sizes import (
    MOST_ARGUMENTS,
    affordable,
    cut_short,
    draw_sizes,
    most_calls,
    room_bytes,
)
from gpu_runner.supervisor.measure.collected import Collected, is_done
from gpu_runner.supervisor.measure.conformance import check_guards
from gpu_runner.supervisor.measure.layout import Layout, Sizes
from gpu_runner.supervisor.measure.turns import stays_in_place, whose_turn
from gpu_runner.supervisor.oracle.client import Description, OutputSpec
from gpu_runner.supervisor.runner.faults import FaultError

OUTPUT = OutputSpec("out", "float32", (4,), (1,), 16)
WORKLOADS = [Workload(name=name, parameters={}) for name in "abcd"]
PLAN = Plan(processes=1, min_calls=8, max_calls=20, precision=0.01, budget_s=1.0)


@pytest.mark.parametrize(
    ("moved", "outputs"),
    [
        (None, 300),  # nobody knows: it may write all
        (400, 100),  # it comes back as it was
        (600, 300),  # and here it is written, too
        (500, 200),
        (50, 100),  # a part of a table is read
    ],
)
def test_what_comes_back_as_it_was_is_not_written(moved: float | None, outputs: float) -> None:
    sizes = Sizes(read=300, written=100, both=200)
    assert (sizes.tensors, sizes.in_arenas, sizes.outputs(moved)) == (400, 600, outputs)


@pytest.mark.parametrize(
    ("hidden", "at", "words"),
    [
        (False, "behind", "wrote out of bounds: behind its output 'out' on n4"),
        (True, "before", "wrote out of bounds: before its output 'out' on a hidden workload"),
    ],
)
def test_the_workload_is_named(hidden: bool, at: str, words: str) -> None:
    rng = random.Random(7)
    [layout] = Layout.draw(Description((), (OUTPUT,)), rng)
    [region] = layout.outputs
    outputs, poison = memoryview(bytearray(region.end + (1 << 20))), Poison(rng)
    poison.fill(outputs, 0, len(outputs))
    workload = Workload(name="n4", parameters={}, hidden=hidden)
    check_guards(outputs, poison, layout, workload)
    outputs[region.end if at == "behind" else region.offset - 1] ^= 1
    with pytest.raises(FaultError) as caught:
        check_guards(outputs, poison, layout, workload)
    assert caught.value.fault.reason == words


def order(seed: int) -> str:
    """The names of twelve calls, one after the other."""
    collected = {workload.name: Collected() for workload in WORKLOADS}
    rng = random.Random(seed)
    names = ""
    for _ in range(12):
        name = whose_turn(WORKLOADS, collected, rng).name
        collected[name].seeds.append(1)
        names += name
    return names


def test_first_calls_come_in_the_tasks_order_and_later_ones_in_none() -> None:
    orders = [order(seed) for seed in range(5)]
    assert {names[:4] for names in orders} == {"abcd"}
    assert len({names[4:] for names in orders}) == 5


def test_the_second_call_stays_in_place_and_later_ones_as_the_draw_falls() -> None:
    rng = random.Random(1)
    assert all(stays_in_place(1, rng) for _ in range(20))
    assert {stays_in_place(calls, rng) for calls in range(2, 20)} == {True, False}


@pytest.mark.parametrize(
    ("times_ns", "spent_s", "enough"),
    [
        ([100.0] * 7, 0.5, False),  # steady times stop at the fewest calls
        ([100.0] * 8, 0.0, True),
        ([100.0, 200.0] * 5, 0.5, False),  # noisy ones go on until calls or seconds run out
        ([100.0, 200.0] * 5, 1.0, True),
        ([100.0, 200.0] * 10, 0.0, True),
        ([100.0] * 2, 9.0, False),  # slow ones are given up after three
        ([100.0] * 3, 9.0, True),
    ],
)
def test_a_workload_is_measured_enough(times_ns: list[float], spent_s: float, enough: bool) -> None:
    assert is_done(PLAN, times_ns, spent_s=spent_s) is enough


def test_calls_that_differ_by_times_get_more_time_and_the_clocks_resolution_is_enough() -> None:
    short = replace(PLAN, budget_s=0.1)
    assert is_done(short, [100.0, 150.0, 190.0], spent_s=0.2)
    assert not is_done(short, [100.0, 150.0, 210.0], spent_s=0.2)
    assert is_done(short, [100.0, 150.0, 210.0], spent_s=1.0)
    assert not is_done(short, [210.0] * 3, spent_s=0.2, claims=[100.0] * 3)
    noisy = [2500.0, 2600.0] * 5
    assert not is_done(PLAN, noisy, spent_s=0.5)
    assert is_done(PLAN, noisy, spent_s=0.5, enough_ns=100.0)
    assert not is_done(PLAN, [ns * 10 for ns in noisy], spent_s=0.5, enough_ns=100.0)


def test_outputs_too_large_to_keep_are_sampled_and_noise_is_looked_at_seldom() -> None:
    assert PLAN.sampled_calls(100) == PLAN.max_samples
    assert PLAN.sampled_calls(1 << 40) == PLAN.min_samples
    ranked = PLANS[Mode.RANKED]
    assert (PLAN.looks(), PLANS[Mode.QUICK].looks(), ranked.looks()) == ((1,), (1,), (3, 6))
    assert (ranked.for_unlisted().processes, ranked.for_checks().processes) == (3, 1)


GIB = 1 << 30


def description(nbytes: int, values: int = 0) -> Description:
    """A call with one output of so many bytes, and so many numbers."""
    shape = (nbytes // 4,)
    output = OutputSpec(name="C", dtype="float32", shape=shape, strides=(1,), nbytes=nbytes)
    numbers = [{"name": f"n{i}", "kind": "value", "value": i} for i in range(values)]
    return Description((*numbers,), (output,))


def test_bursts_have_at_least_half_of_the_most_calls_and_take_five_milliseconds() -> None:
    for most in (1, 2, 3, 8, 16, 64):
        for seed in range(5):
            sizes = draw_sizes(most, 4, random.Random(seed))
            assert len(sizes) == 4
            assert most // 2 <= min(sizes) <= max(sizes) <= most
            assert draw_sizes(most, 0, random.Random(seed)) == []
    for time_ns, calls in ((50e3, 64), (100e3, 50), (1e6, 5), (20e6, 1), (5e-324, 64)):
        assert affordable(64, [3 * time_ns, time_ns]) == calls
    assert affordable(64, []) == 64


def test_whoever_rests_at_first_is_asked_again() -> None:
    cut, whole = [Burst(calls=1, held_ns=9e6)], [Burst(calls=33, held_ns=2e6)]
    assert cut_short(cut, 64, [9e6, 50e3])
    assert not cut_short(cut, 64, [9e6, 9e6])
    assert not cut_short([*cut, *whole], 64, [9e6, 50e3])
    assert not cut_short([], 64, [50e3])


def test_bursts_are_as_large_as_memory_and_socket_allow() -> None:
    assert most_calls(description(4096), DeviceKind.CUDA, GIB) == MOST_BURST_CALLS[DeviceKind.CUDA]
    assert most_calls(description(4096), DeviceKind.CPU, 0) == 1  # none are made there
    assert most_calls(description(GIB // 4), DeviceKind.CUDA, 2 * GIB) in (7, 8)
    assert most_calls(description(4 * GIB), DeviceKind.CUDA, GIB) == 1
    assert most_calls(description(4096, values=255), DeviceKind.CUDA, GIB) == MOST_ARGUMENTS // 256


def test_the_memory_of_a_gpu_decides_how_much_a_burst_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvml, "memory_total", {0: 80 * GIB, 1: 24 * GIB}.__getitem__)
    configs = [SupervisorConfig(kind=DeviceKind.CUDA, device="test", index=i) for i in (0, 1)]
    assert [room_bytes(config) for config in configs] == [10 * GIB, 3 * GIB]

    def gone(index: int) -> int:
        raise nvml.NvmlError("nvmlDeviceGetMemoryInfo failed with status 15")

    monkeypatch.setattr(nvml, "memory_total", gone)
    with pytest.raises(DeviceError, match="no CUDA device 1: nvmlDeviceGetMemoryInfo failed"):
        room_bytes(configs[1])
