"""Other values for listed workloads: which, how often, and that no time of them counts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpu_runner.data import wire
from gpu_runner.data.formats import find_task
from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import FIRST_CALLS
from gpu_runner.data.task import Task, Values, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.collected import Collected
from gpu_runner.supervisor.measure.sampled_outputs import Sample
from gpu_runner.supervisor.measure.staging import Memory
from gpu_runner.supervisor.oracle.client import Description, Oracle, OutputSpec, Verification
from gpu_runner.supervisor.oracle.distributions import InputDistributions, SupportedDistributions
from gpu_runner.supervisor.runner.answer import Answer
from gpu_runner.supervisor.runner.session import Session

WORKLOAD = Workload(name="only", parameters={})
FAMILIES = (Values.LARGE, Values.HEAVY, Values.SHIFTED)
OUTPUT = OutputSpec(name="out", dtype="float32", shape=(4,), strides=(1,), nbytes=16)
DESCRIPTION = Description(arguments=(), outputs=(OUTPUT,))
PLAN = Plan(processes=3, min_calls=20, max_calls=40, varied=2)


def softmax() -> Task:
    return find_task("softmax")


class Asked:
    """An oracle that knows how far the reference is off on each family."""

    def __init__(self, errors: dict[Values, float]) -> None:
        self.errors = errors
        self.calls: list[tuple[str, Values]] = []

    def own_error(self, workload: Workload, direction: Direction, seed: int) -> float:
        self.calls.append((workload.name, workload.values))
        return self.errors.get(workload.values, 0.1)


def test_what_the_reference_does_not_bear_is_left_out_and_that_is_remembered(
    tmp_path: Path,
) -> None:
    config = SupervisorConfig(kind=DeviceKind.CPU, device="cpu", cache_folder=tmp_path)
    values = SupportedDistributions(softmax(), Direction.FORWARD, config)
    oracle = Asked({Values.LARGE: 0.51})
    workloads = softmax().workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=True)
    found = values.of(cast(Oracle, oracle), workloads, random.Random(1))
    assert set(found) == {w.name for w in workloads if not w.hidden}
    left = (Values.HEAVY, Values.STRUCTURED, Values.HARD, Values.NEAR)
    assert set(found.values()) == {left}
    assert len(oracle.calls) == 5 * len(found)
    again = SupportedDistributions(softmax(), Direction.FORWARD, config)
    assert again.of(cast(Oracle, oracle), workloads, random.Random(1)) == found
    assert len(oracle.calls) == 5 * len(found)


def test_families_are_those_of_hidden_workloads_of_the_same_device() -> None:
    task = softmax()
    [public] = (w for w in task.workloads if w.name == "cpu_n16_c256")
    found = task.other_values(public, DeviceKind.CPU, Direction.FORWARD)
    own = (Values.LARGE, Values.HEAVY, Values.STRUCTURED)  # integers are left out
    assert found == (*own, Values.HARD)
    on_cuda = task.other_values(public, DeviceKind.CUDA, Direction.FORWARD)
    assert Values.SHIFTED in on_cuda
    large = replace(public, values=Values.LARGE)
    assert task.other_values(large, DeviceKind.CPU, Direction.FORWARD)[0] is Values.DRAWN
    bare = replace(task, workloads=(public,))
    assert bare.other_values(public, DeviceKind.CPU, Direction.FORWARD) == (Values.HARD,)


def test_each_family_comes_once_before_any_comes_again() -> None:
    orders = set()
    for seed in range(20):
        distributions = InputDistributions({"only": FAMILIES}, random.Random(seed))
        drawn = [distributions.draw(WORKLOAD).values for _ in range(6)]
        assert set(drawn[:3]) == set(drawn[3:]) == set(FAMILIES)
        orders.add(tuple(drawn))
    assert len(orders) > 5
    assert not InputDistributions({"only": ()}, random.Random(1)).has(WORKLOAD)


def test_nearly_the_same_inputs_are_never_drawn_among_other_values() -> None:
    near = InputDistributions({"only": (Values.LARGE, Values.NEAR)}, random.Random(1))
    assert near.has_near(WORKLOAD)
    assert {near.draw(WORKLOAD).values for _ in range(20)} == {Values.LARGE}
    alone = InputDistributions({"only": (Values.NEAR,)}, random.Random(1))
    assert alone.has_near(WORKLOAD)
    assert not alone.has(WORKLOAD)


class Staged:
    """Memory that notes the values of what is staged."""

    def __init__(self) -> None:
        self.values: list[Values] = []
        self.staged: list[tuple[int, object]] = []

    def is_roomy(self) -> bool:
        return True

    def stage(self, batch: Any, *, handed: bool) -> None:
        self.values.append(batch.workload.values)
        self.staged.append((batch.seeds[0], batch.layouts))

    def check(self, batch: object) -> None:
        """Nothing can have been overwritten."""

    def sample(self, layout: object, offsets: object, returned: object) -> None:
        """Nothing is looked at."""


class Timed:
    """A session whose calls all take the same time."""

    target = SimpleNamespace(python=False, abi=Abi.C)

    def call(self, call: object, stage: Callable[[], None]) -> Any:
        stage()
        done = wire.Done(1, 1000.0, outputs=())
        return Answer(done=done, wall_ns=2000, held_ns=2000.0)


class Verifier:
    """An oracle that is asked for the right values of every call."""

    def __init__(self) -> None:
        self.values: list[Values] = []

    def verify(self, workload: Workload, *_: object, explain: bool) -> Verification:
        self.values.append(workload.values)
        wrong = cast(Any, "wrong") if workload.values is Values.HEAVY else None
        return Verification((), wrong)


@contextmanager
def bench_of(
    kind: DeviceKind, memory: Staged, oracle: Verifier, rng: random.Random, *families: Values
) -> Iterator[Bench]:
    with closing(Arena("samples")) as arena:
        config = SupervisorConfig(kind=kind, device="test")
        bench = Bench(cast(Oracle, oracle), cast(Memory, memory), arena, config, rng)
        bench.described = {WORKLOAD.name: DESCRIPTION}
        if families:
            bench._distributions = InputDistributions({WORKLOAD.name: families}, rng)
        yield bench


def one_process(bench: Bench, plan: Plan, seed: int) -> Collected:
    state = Collected()
    bench.samples.prepare(bench.described, plan)
    while not bench._is_done(WORKLOAD, plan, state):
        bench._next(cast(Session, Timed()), WORKLOAD, 0, plan, state)
    return state


@pytest.mark.parametrize("seed", range(10))
def test_calls_with_other_values_are_verified_and_not_timed(seed: int) -> None:
    memory, oracle, rng = Staged(), Verifier(), random.Random(seed)
    with bench_of(DeviceKind.CUDA, memory, oracle, rng, *FAMILIES) as bench:
        verified: Counter[Values] = Counter()
        for _ in range(PLAN.processes):
            memory.values, oracle.values = [], []
            state = one_process(bench, PLAN, seed)
            others = [values for values in memory.values if values is not Values.DRAWN]
            assert len(others) >= PLAN.varied
            assert others == [values for values, _ in state.varied]
            assert len(state.times_ns) == len(state.seeds) == len(memory.values) - len(others)
            checked = bench.verify(WORKLOAD, state)
            assert checked.mismatch is None
            assert set(checked.varied) == {Values.HEAVY} & set(oracle.values)
            assert state.as_run(0).varied == len(state.verified(Sample.VARIED))
            verified.update(oracle.values)
    assert set(FAMILIES) <= set(verified)


def test_the_first_call_is_followed_by_nearly_the_same_in_the_same_places() -> None:
    memory, oracle, rng = Staged(), Verifier(), random.Random(4)
    with bench_of(DeviceKind.CPU, memory, oracle, rng, Values.NEAR) as bench:
        state = one_process(bench, FIRST_CALLS, 4)
        assert memory.values == [Values.DRAWN, Values.NEAR, Values.DRAWN]
        assert memory.staged[0] == memory.staged[1] != memory.staged[2]
        bench.verify(WORKLOAD, state)
    assert sorted(oracle.values) == [Values.DRAWN, Values.DRAWN, Values.NEAR]


def test_without_other_values_nothing_changes() -> None:
    memory, rng = Staged(), random.Random(3)
    with bench_of(DeviceKind.CUDA, memory, Verifier(), rng) as bench:
        assert one_process(bench, PLAN, 3).varied == []
        bench._distributions = InputDistributions({WORKLOAD.name: FAMILIES}, rng)
        assert one_process(bench, PLAN.for_checks(), 3).varied == []
    assert set(memory.values) == {Values.DRAWN}
