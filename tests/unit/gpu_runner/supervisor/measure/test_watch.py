"""Which calls are watched, and which never are."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any, cast

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.measure import watch as module
from gpu_runner.supervisor.measure.collected import Collected
from gpu_runner.supervisor.measure.sampled_outputs import Sample
from gpu_runner.supervisor.measure.watch import Watch
from gpu_runner.supervisor.work import onlooker
from gpu_runner.supervisor.work.attribution import Worked

PUBLIC = next(w for w in find_task("softmax").workloads if not w.hidden)
HIDDEN = dataclasses.replace(PUBLIC, name="secret", hidden=True)
UNLISTED = dataclasses.replace(HIDDEN, unlisted=True)
NOBODY = cast(Any, None)  # is asked for nothing


class Answers:
    """A bench whose calls take no time at all, and are seen by nobody."""

    gate_ns = returned = None
    seeds = (7,)

    def __init__(self, held_ns: float) -> None:
        self.held_ns, self.calls = held_ns, 0
        self.workload, self.samples = PUBLIC, self
        self.kept: list[tuple[Sample, int, int]] = []

    def one_call(self, session: Any, workload: Any, place: int, state: Any) -> tuple[Any, Any]:
        assert workload in (PUBLIC, UNLISTED)
        self.calls += 1
        if session.onlooker is not None:
            session.onlooker.looks.append([])
        return self, self

    def draw_slot(self, workload: str, index: int, sample: Sample) -> int | None:
        return None if index % 100 else index // 100

    def retain(self, timed: Any, batch: Any, place: int, where: Any, returned: None) -> None:
        self.kept.append(where)

    @property
    def wall_ns(self) -> int:
        return 1000


class Session:
    onlooker: Any = None


def watched(
    held_ns: float, *workloads: Workload, kind: DeviceKind = DeviceKind.CPU
) -> tuple[Watch, Answers]:
    bench, watch = Answers(held_ns), Watch([], kind)
    timed = Collected(held_ns=[1000.0, 900.0], counted_ns=[800.0])
    workloads = workloads or (HIDDEN, PUBLIC)
    both = {w.name: timed for w in workloads}
    watch.over(cast(Any, bench), cast(Any, Session()), workloads, both)
    return watch, bench


def test_hidden_workloads_are_not_watched_nor_named() -> None:
    watch = Watch([], DeviceKind.CPU)
    watch.over(NOBODY, NOBODY, [HIDDEN], {"secret": Collected()})
    assert watch.worked is None
    watch, _ = watched(900.0)
    assert watch.worked is not None
    assert watch.worked.workload == PUBLIC.name


def test_unlisted_sizes_are_watched_on_a_cpu_and_not_named() -> None:
    """They are half of a score; on a GPU a profiler tells, of public ones."""
    watch, _ = watched(900.0, UNLISTED)
    assert watch.worked is not None
    assert watch.worked.workload == "unlisted sizes"
    watch, bench = watched(900.0, UNLISTED, kind=DeviceKind.CUDA)
    assert (watch.worked, bench.calls) == (None, 0)


def test_enough_looks_end_it_and_say_how_long_other_calls_took() -> None:
    watch, bench = watched(1800.0)
    assert 200 <= bench.calls < 2000
    assert watch.worked is not None
    assert watch.worked.slower == 2.0
    assert bench.kept[:2] == [(Sample.WATCHED, 0, 0), (Sample.WATCHED, 1, 100)]


@pytest.mark.parametrize(("every", "slower"), [(2, 1.0), (20, 5.0)])
def test_calls_that_seem_slow_get_time_and_a_few_quick_ones_excuse_nothing(
    monkeypatch: pytest.MonkeyPatch, every: int, slower: float
) -> None:
    """After a busy moment, half of the calls are quick again; a library could make one of 20."""
    monkeypatch.setattr(module, "LOOKING_S", (0.01, 0.02, 0.05, 0.3))
    bench, watch = Answers(4500.0), Watch([], DeviceKind.CPU)
    timed = Collected(held_ns=[1000.0, 900.0], counted_ns=[800.0])
    real = bench.one_call

    def one_call(*given: Any) -> Any:
        is_quick = bench.calls > 300 and bench.calls % every == 0
        bench.held_ns = 900.0 if is_quick else 4500.0
        return real(*given)

    monkeypatch.setattr(bench, "one_call", one_call)
    watch.over(cast(Any, bench), cast(Any, Session()), [PUBLIC], {PUBLIC.name: timed})
    assert watch.worked is not None
    assert watch.worked.slower == slower


@pytest.mark.parametrize(
    ("kind", "met", "rounds"),
    [
        (DeviceKind.CPU, Worked(own=3), 3),
        (DeviceKind.CPU, Worked(), 4),
        (DeviceKind.CPU, Worked(own=3, libraries=Counter(mkl=2)), 4),
        (DeviceKind.CUDA, Worked(libraries=Counter(mkl=2)), 2),
    ],
    ids=["its own is met", "nobody is met", "a library is met", "a GPU's host"],
)
def test_it_goes_on_for_a_library_that_was_met_too_rarely_to_tell(
    monkeypatch: pytest.MonkeyPatch, kind: DeviceKind, met: Worked, rounds: int
) -> None:
    seen: list[Worked] = []

    def attributed(*_: object) -> Worked:
        seen.append(met)
        return met

    monkeypatch.setattr(module, "LOOKING_S", (0.05, 0.1, 0.2, 0.4))
    monkeypatch.setattr(module, "LEAST_WATCHED", 2)
    monkeypatch.setattr(onlooker, "MOST_LOOKS", 1 << 30)
    monkeypatch.setattr(Watch, "_attributed", attributed)
    bench, watch = Answers(900.0), Watch([], kind)
    timed = {PUBLIC.name: Collected(held_ns=[1000.0], counted_ns=[800.0])}
    watch.over(cast(Any, bench), cast(Any, Session()), [PUBLIC], timed)
    assert len(seen) == rounds


OTHER = dataclasses.replace(PUBLIC, name="other")


def test_a_library_in_another_workload_or_process_is_not_outweighed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def attributed(_: Watch, looks: object, workload: Any) -> Worked:
        theirs = 4 if workload == OTHER and bench.processes == 2 else 0
        return Worked(own=100 - theirs, libraries=Counter(mkl=theirs * 25), workload=workload.name)

    monkeypatch.setattr(Watch, "_attributed", attributed)
    monkeypatch.setattr(module, "LOOKING_S", (0.01, 0.02))
    bench, watch = AnyCalls(900.0), Watch([], DeviceKind.CPU)
    timed = Collected(held_ns=[1000.0], counted_ns=[800.0])
    for bench.processes in (1, 2, 3):
        workloads = [PUBLIC, OTHER]
        both = {w.name: timed for w in workloads}
        watch.over(cast(Any, bench), cast(Any, Session()), workloads, both)
        assert watch.worked is not None
        assert (watch.worked.workload == OTHER.name) == (bench.processes > 1)


class AnyCalls(Answers):
    """Calls of any workload, in the process with this number."""

    processes = 1

    def one_call(self, session: Any, workload: Any, place: int, state: Any) -> tuple[Any, Any]:
        return super().one_call(session, PUBLIC, place, state)
