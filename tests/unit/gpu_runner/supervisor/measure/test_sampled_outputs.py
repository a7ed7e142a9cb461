"""What decides about a time is kept for verification, whatever the draw."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpu_runner.data import wire
from gpu_runner.data.plan import Plan
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.collected import BURSTS, SINGLES, Collected
from gpu_runner.supervisor.measure.outside import EmptyKernelTime
from gpu_runner.supervisor.measure.sampled_outputs import Sample, SampledOutputs
from gpu_runner.supervisor.measure.staging import Memory
from gpu_runner.supervisor.oracle.client import Description, Oracle, OutputSpec
from gpu_runner.supervisor.runner.answer import Answer
from gpu_runner.supervisor.runner.session import Session

WORKLOAD = Workload(name="only", parameters={})
OUTPUT = OutputSpec(name="out", dtype="float32", shape=(4,), strides=(1,), nbytes=16)
DESCRIPTION = Description(arguments=(), outputs=(OUTPUT,))
PLAN = Plan(processes=1, min_calls=9, max_calls=60, max_samples=4, bursts=4, sampled_of_bursts=2)


class NoMemory:
    """Where nothing is staged, and everything can be taken."""

    def __init__(self) -> None:
        self.places: list[Sequence[int]] = []

    def is_roomy(self) -> bool:
        return True

    def stage(self, batch: object, *, handed: bool = False) -> None:
        """Nothing to draw."""

    def check(self, batch: object) -> None:
        """Nothing can have been overwritten."""

    def sample(self, layout: object, offsets: Sequence[int], returned: object) -> None:
        self.places.append(offsets)


@dataclass
class Scripted:
    """A session whose calls claim, hold, and take at the gate what is said."""

    singles: list[tuple[float, float, float]]
    bursts: list[float] = field(default_factory=list)
    target: Any = field(default_factory=lambda: SimpleNamespace(python=False, abi=Abi.C))

    def call(self, call: wire.Call, stage: Callable[[], None]) -> Any:
        stage()
        claimed, held, gate = self.singles.pop(0)
        done = wire.Done(call.call_id, claimed, host_ns=0, outputs=())
        return Answer(done, 0, held, gate_ns=gate)

    def burst(self, burst_id: int, calls: Sequence[wire.Call], stage: Callable[[], None]) -> Any:
        stage()
        return SimpleNamespace(held_ns=self.bursts.pop(0) * len(calls))


EMPTY = EmptyKernelTime(intercept_ns=0, slope_ns=0, deviation_ns=0)
GATED = dataclasses.replace(EMPTY, gate_ns=300.0)


def make_bench(
    kind: DeviceKind, arena: Arena, rng: random.Random, empty: EmptyKernelTime = EMPTY
) -> Bench:
    config = SupervisorConfig(kind=kind, device="test")
    bench = Bench(cast(Oracle, None), cast(Memory, NoMemory()), arena, config, rng)
    bench.described, bench._most = {WORKLOAD.name: DESCRIPTION}, {WORKLOAD.name: 6}
    bench.samples.prepare(bench.described, PLAN)
    bench.know_empty({WORKLOAD.name: empty})
    return bench


def test_the_single_calls_on_which_a_time_and_its_bounds_rest_are_kept() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        calls = [(1e3 + rng.random(),) * 3 for _ in range(60)]
        fastest, least, gated = rng.sample(range(60), 3)
        calls[fastest], calls[least] = (9e2, 2e3, 2e3), (2e3, 1e2, 2e3)
        calls[gated] = (2e3, 2e3, 10.0)
        session = cast(Session, Scripted(list(calls)))
        with closing(Arena("samples")) as arena:
            bench, state = make_bench(DeviceKind.CPU, arena, rng), Collected()
            for _ in calls:
                bench._single(session, WORKLOAD, 0, state)
        assert {fastest, least, gated} <= set(state.verified(*SINGLES))
        assert len(state.verified(Sample.SINGLE)) == PLAN.max_samples


@pytest.mark.parametrize("seed", range(10))
def test_whoever_leaves_out_the_work_of_some_calls_is_seen_on_a_gpu(seed: int) -> None:
    """Such calls are the fast ones; a draw alone would miss them now and then."""
    rng = random.Random(seed)
    calls = [(1e3 + rng.random(),) * 3 for _ in range(24)]
    left_out = rng.randrange(24)
    calls[left_out] = (1.0, 1e3, 1e3)
    session = cast(Session, Scripted(list(calls)))
    with closing(Arena("samples")) as arena:
        bench, state = make_bench(DeviceKind.CUDA, arena, rng), Collected()
        for _ in calls:
            bench._single(session, WORKLOAD, 0, state)
    assert state.verified(Sample.FASTEST) == (left_out,)


def single_calls(session: Scripted, calls: int) -> Collected:
    state = Collected()
    with closing(Arena("samples")) as arena:
        bench = make_bench(DeviceKind.CPU, arena, random.Random(1), GATED)
        for _ in range(calls):
            bench._single(cast(Session, session), WORKLOAD, 0, state)
    return state


def test_a_forged_claim_takes_no_place_from_the_call_that_counts() -> None:
    """What was seen of the first is more than it claims: the third is the fastest, and verified."""
    singles = [(1.0, 1e4, 7e3), (9e3, 1e4, 9.3e3), (5e3, 1e4, 7.1e3)]
    singles += [(9e3, 9e3, 9.3e3)] * 40
    state = single_calls(Scripted(list(singles)), len(singles))
    assert state.times_ns[:3] == [1.0, 9e3, 5e3]
    seen = [0.98 * (gate - GATED.gate_ns) - 1_030 for gate in (7e3, 9.3e3, 7.1e3)]
    assert state.counted_ns[:3] == pytest.approx([seen[0], 9e3, seen[2]])
    assert {0} == set(state.verified(Sample.FASTEST)) == set(state.verified(Sample.LEAST_GATED))
    quick = [(1.0, 1e4, 9e3), *singles[1:]]
    assert single_calls(Scripted(quick), len(quick)).verified(Sample.FASTEST) == (2,)


def test_of_the_burst_with_the_least_mean_as_much_is_kept_as_there_is_room_for() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        means = [2000.0, 1500.0, 300.0, 1800.0]
        rng.shuffle(means)
        small = rng.randrange(5)
        means.insert(small, 200.0)  # of a small burst, which says nothing
        order = [5, 3, 6, 4]
        order.insert(4 - small, 1)
        state = Collected(sizes=order, most=6)
        sizes = list(reversed(state.sizes))
        session = cast(Session, Scripted([], bursts=list(means)))
        with closing(Arena("samples")) as arena:
            bench = make_bench(DeviceKind.CUDA, arena, rng)
            for _ in means:
                bench._burst(session, WORKLOAD, 0, state)
        least = means.index(300.0)
        began = sum(sizes[:least])
        own = set(range(began, began + sizes[least]))
        kept = set(state.verified(Sample.LEAST_BURST))
        assert kept <= own
        assert len(kept) == min(PLAN.max_samples, sizes[least])
        assert kept <= set(state.verified(*BURSTS))


@pytest.mark.parametrize("seed", range(10))
def test_a_process_that_rests_at_first_buys_no_small_bursts(seed: int) -> None:
    rng = random.Random(seed)
    plan = Plan(processes=1, min_calls=30, max_calls=40, bursts=4)
    singles = [(20e6, 21e6, 20e6)] * 15 + [(50e3, 90e3, 51e3)] * 25
    session = cast(Session, Scripted(singles, bursts=[60e3] * 9))
    with closing(Arena("samples")) as arena:
        bench = make_bench(DeviceKind.CUDA, arena, rng)
        state = Collected(sizes=[7, 63, 4, 40], most=64)
        while not bench._is_done(WORKLOAD, plan, state):
            bench._next(session, WORKLOAD, 0, plan, state)
    assert max(burst.calls for burst in state.bursts) >= 32
    assert len(state.bursts) <= 5


def test_slots_do_not_overlap() -> None:
    with closing(Arena("samples")) as arena:
        samples = SampledOutputs(arena, random.Random(1), held=True)
        samples.prepare({"a": DESCRIPTION, "b": DESCRIPTION}, PLAN)
        places = [
            samples.offsets(name, slot, sample)[0]
            for name in "ab"
            for sample in Sample
            for slot in range(samples.slots(name, sample))
        ]
        size = len(arena.view)
    places.sort()
    assert len(places) == 2 * (4 + 1 + 1 + 1 + 2 + 4 + 2)
    assert places[-1] + OUTPUT.nbytes <= size
    assert all(b - a >= OUTPUT.nbytes for a, b in itertools.pairwise(places))
