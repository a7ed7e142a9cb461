"""A kernel may return the same memory in each call: every call's result is copied all the same."""

from __future__ import annotations

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
        return tensor.data_ptr() == self.ours.data_ptr()

    def hand_out(self, one: PlacedCall, result: object) -> list[Tensor]:
        assert isinstance(result, Tensor)
        self.taken[float(one.tensors[0])] = result.clone()
        return [result]


class Recording(Recorder):
    """Makes calls once while it records them, as a graph does without doing their work."""

    def __init__(self, *, works: bool) -> None:
        super().__init__()
        self._works = works

    def recorded(self, calls: Any) -> Callable[[], list[object]]:
        if not self._works:
            raise RuntimeError("it reads a value")
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
    ("function", "way"),
    [
        *product([kept, fresh], ["recorded", "refused", "not recordable"]),
        (by_turns(), "recorded"),
    ],
)
def test_every_call_of_a_burst_is_taken(function: Callable[..., Tensor], way: str) -> None:
    memory, recordable = Memory(), way != "not recordable"
    bursts = Bursts(memory, Recording(works=way == "recorded"), "cuda")
    for value in (1.0, 2.0):
        one = placed(function, value, recordable=recordable)
        bursts.look(7, memory.hand_out(one, function(*one.tensors)))
    values = [10.0 + number for number in range(CALLS)]
    coming = [placed(function, value, recordable=recordable) for value in values]
    for one, result in bursts.still_there(coming, bursts.of(coming)()):
        memory.hand_out(one, result)
    for value in values:
        assert memory.taken[value].tolist() == [value] * 4


def test_memory_that_was_chosen_for_a_call_is_no_sign() -> None:
    """An in-out argument comes back where it is."""
    memory = Memory()
    bursts = Bursts(memory, Recording(works=True), "cuda")
    memory.ours = torch.empty(4)
    for _ in range(2):
        bursts.look(7, [memory.ours])
    coming = [placed(fresh, 1.0, recordable=True)] * CALLS
    assert len(bursts.still_there(coming, [None] * CALLS)) == CALLS
