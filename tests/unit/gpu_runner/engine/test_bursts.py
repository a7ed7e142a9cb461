"""A kernel may return the same memory in each call: every call's result is copied all the same."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from gpu_runner.engine.device.recorded import Recorder
from gpu_runner.engine.runner import bursts as module
from gpu_runner.engine.runner.again import PlacedCall
from gpu_runner.engine.runner.bursts import Bursts

CALLS = 3
KEPT = torch.empty(4)


class Memory:
    """Takes what is handed out."""

    def __init__(self) -> None:
        self.ours = torch.empty(0)
        self.taken: dict[float, Tensor] = {}

    def is_ours(self, tensor: Tensor) -> bool:
        return bool(self.ours.numel()) and tensor.data_ptr() == self.ours.data_ptr()

    def hand_out(self, one: PlacedCall, result: object) -> list[Tensor]:
        assert isinstance(result, Tensor)
        self.taken[float(one.tensors[0])] = result.clone()
        return [result]


class Recording(Recorder):
    """Makes calls once while it records them, as a graph does without doing their work."""

    def __init__(self, *, works: bool) -> None:
        super().__init__()
        self._works, self.times = works, 0

    def recorded(self, calls: Any) -> Callable[[], list[object]]:
        if not self._works:
            raise RuntimeError("it reads a value")
        self.times += 1
        self.results = [call() for call in calls]
        return lambda: [call() for call in calls]


def kept(x: Tensor) -> Tensor:
    return KEPT.copy_(x.expand(4))


def fresh(x: Tensor) -> Tensor:
    return x.expand(4).clone()


def by_turns() -> Callable[[Tensor], Tensor]:
    """Two places, each of which every other call returns."""
    places = [torch.empty(4), torch.empty(4)]

    def call(x: Tensor) -> Tensor:
        places.reverse()
        return places[0].copy_(x.expand(4))

    return call


def kept_later() -> Callable[[Tensor], Tensor]:
    """The first call, which records a graph, returns memory of its own."""
    calls = itertools.count()
    return lambda x: kept(x) if next(calls) else fresh(x)


def placed(function: Callable[..., Tensor], value: float, *, recordable: bool) -> PlacedCall:
    prepared = SimpleNamespace(
        function=function, recordable=recordable, arrange=tuple, fill=lambda: None
    )
    call = SimpleNamespace(setup=7)
    return PlacedCall(cast(Any, call), cast(Any, prepared), [torch.tensor(value)])


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_runner.engine.device.recorded._forget_failure", lambda: None)
    monkeypatch.setattr(module, "returned_tensors", lambda result, device: [result])


@pytest.mark.parametrize(
    ("kernel", "way"),
    [
        *product([lambda: kept, lambda: fresh], ["recorded", "refused", "not recordable"]),
        *product([by_turns, kept_later], ["recorded", "refused"]),
    ],
)
def test_every_call_of_a_burst_is_taken(
    kernel: Callable[[], Callable[..., Tensor]], way: str
) -> None:
    memory, recordable, function = Memory(), way != "not recordable", kernel()
    bursts = Bursts(memory, Recording(works=way == "recorded"), "cuda")
    for value in (1.0, 2.0, 3.0):
        one = placed(function, value, recordable=recordable)
        bursts.look(7, memory.hand_out(one, function(*one.tensors)))
    values = [10.0 + number for number in range(CALLS)]
    coming = [placed(function, value, recordable=recordable) for value in values]
    bursts.copy(coming, bursts.of(coming)())
    for value in values:
        assert memory.taken[value].tolist() == [value] * 4


def copied_by(bursts: Bursts, memory: Memory) -> int:
    """How many results of calls are still to be copied."""
    coming = [placed(fresh, float(number), recordable=True) for number in range(CALLS)]
    bursts.copy(coming, [torch.empty(4)] * CALLS)
    return len(memory.taken)


def test_copies_are_recorded_too() -> None:
    memory, recorder = Memory(), Recording(works=True)
    bursts = Bursts(memory, recorder, "cuda")
    coming = [placed(fresh, float(number), recordable=True) for number in range(CALLS)]
    results = bursts.of(coming)()
    assert recorder.times == 2
    memory.taken.clear()
    [last] = bursts.copy(coming, results)
    assert last is results[-1]
    assert len(memory.taken) == CALLS


class Output:
    """As much of a tensor as is looked at. Of a graph of PyTorch's, it may lose its memory."""

    nbytes = 1 << 29

    def __init__(self, place: int) -> None:
        self.place = place

    def numel(self) -> int:
        return 1

    def data_ptr(self) -> int:
        if self.place == 0:
            raise RuntimeError("overwritten by a subsequent run")
        return self.place


def test_an_output_is_not_asked_for_its_place_once_there_is_another() -> None:
    memory, outputs = Memory(), [Output(1), Output(2)]
    bursts = Bursts(memory, Recording(works=True), "cuda")
    for output in outputs:
        bursts.look(7, [cast(Any, output)])
        output.place = 0
    bursts.look(7, [cast(Any, Output(2))])
    assert copied_by(bursts, memory) == 1


def test_outputs_of_all_workloads_are_held_up_to_a_limit() -> None:
    bursts = Bursts(Memory(), Recording(works=True), "cuda")
    held = []
    for number in range(1, 5):
        output = Output(number)
        held.append(weakref.ref(output))
        bursts.look(number, [cast(Any, output)])
        del output
    assert [output() is not None for output in held] == [True, True, False, False]


def test_memory_that_was_chosen_for_a_call_is_no_sign() -> None:
    """An in-out argument comes back where it is."""
    memory = Memory()
    bursts = Bursts(memory, Recording(works=True), "cuda")
    memory.ours = torch.empty(4)
    for _ in range(2):
        bursts.look(7, [memory.ours])
    assert copied_by(bursts, memory) == CALLS
