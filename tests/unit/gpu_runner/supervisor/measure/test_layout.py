"""How calls are laid out, whose turn it is, when it is enough, and what lies beside outputs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import FIRST_CALLS, PLANS
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Mode
from gpu_runner.supervisor.host.arena import Poison
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


def test_what_each_mode_makes_of_a_workload() -> None:
    assert PLAN.sampled_calls(100) == PLAN.max_samples
    assert PLAN.sampled_calls(1 << 40) == PLAN.min_samples  # of outputs too large to keep
    ranked, quick = PLANS[Mode.RANKED], PLANS[Mode.QUICK]
    assert ranked.processes >= 3
    assert ranked.hidden
    assert ranked.baselines
    assert ranked.first_calls
    assert FIRST_CALLS.team >= 4
    assert not quick.baselines
    assert (PLAN.looks(), quick.looks(), ranked.looks()) == ((1,), (1,), (3, 6))
    assert (ranked.for_unlisted().processes, ranked.for_checks().processes) == (3, 1)
