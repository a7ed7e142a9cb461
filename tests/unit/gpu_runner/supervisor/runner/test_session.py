"""A call on a device has lasted until the device is seen without work, whatever was said before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpu_runner.data import wire
from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.supervisor.host.channel import Channel
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.conditions import Conditions
from gpu_runner.supervisor.runner.faults import FaultError
from gpu_runner.supervisor.runner.freeze import Freezer
from gpu_runner.supervisor.runner.gate import NOTHING
from gpu_runner.supervisor.runner.session import Session

LATE_NS = 3_000_000


class Tree:
    """A runner's processes, of which it is only noted what is done to them."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @property
    def threads(self) -> int:
        return 1

    def held_ns(self, wall_ns: int, *, on_cpu: bool) -> float:
        assert not on_cpu
        self.told.append("held")
        return float(wall_ns)

    def __getattr__(self, name: str) -> Callable[[], float]:
        def note() -> float:
            self.told.append(name)
            return 0.0

        return note


class Answering(Session):
    """A session whose runner answers at once."""

    def __init__(self, reply: wire.Done, completion: Any) -> None:
        self.tree = Tree()
        self._freezer = cast(Freezer, self.tree)
        self._config = SupervisorConfig(kind=DeviceKind.CUDA, device="test")
        self._conditions = Conditions(completion=completion)
        self._gate, self._page, self._ncu, self._has_own_cpu = None, None, None, True
        self._target = cast(Any, SimpleNamespace(python=False))
        self._process = cast(Any, SimpleNamespace(handles=-1))
        self._allowed_s, self._reply = 1.0, reply
        self._channel = cast(Any, SimpleNamespace(allow=lambda seconds: None))

    def _send(self, data: bytes) -> None:
        self.tree.told.append("sent")

    def _receive(self, when: str) -> float | wire.Done:
        self.tree.told.append("answered")
        return self._reply


class Ending(Session):
    """A session whose runner has ended, and may have said why."""

    def __init__(self, said: bytes) -> None:
        self._freezer, self._ncu, self._is_idle = None, None, True
        self._target = cast(Any, Ended)
        self._child = cast(Any, Ended)
        self._channel = Channel()
        self._channel.allow(5)
        os.write(self._channel.child_descriptor, said)
        self._channel.started()

    def _ended(self) -> int:
        return 0


class Ended:
    """What is known of such a process."""

    is_module = True
    memory_exceeded = False

    @staticmethod
    def killed_from_outside(status: int | None) -> bool:
        return False


@contextmanager
def late() -> Iterator[Callable[[Callable[[], None]], int]]:
    """A device that works for some milliseconds after the answer."""

    def completed_ns(meanwhile: Callable[[], None]) -> int:
        meanwhile()
        return time.monotonic_ns() + LATE_NS

    yield completed_ns


def test_work_that_goes_on_after_the_answer_counts() -> None:
    session = Answering(wire.Done(7, 1000.0, ()), late)
    answer = session._ask(b"call", 7, lambda: -1)
    assert answer.wall_ns >= LATE_NS
    assert answer.held_ns >= LATE_NS
    told = session.tree.told  # the tree is told to stop while the device is looked at
    assert told.index("thaw") < told.index("answered") < told.index("halt") < told.index("freeze")


def test_a_call_under_a_tool_begins_when_its_inputs_are_there() -> None:
    """Nothing holds such a process back, and the tool reports what it does with other inputs."""
    session = Answering(wire.Done(7, 1000.0, ()), late)
    session._freezer = None
    told = session.tree.told
    answer = session._ask(b"call", 7, lambda: (told.append("staged"), NOTHING)[1])
    assert told == ["staged", "sent", "answered"]
    assert answer.wall_ns >= LATE_NS


def test_work_that_is_put_off_until_outputs_are_copied_counts_and_finds_no_inputs() -> None:
    session = Answering(wire.Done(7, 1000.0, ()), late)
    told = session.tree.told
    session._target = cast(Any, SimpleNamespace(python=True))
    session._conditions = Conditions(completion=late, withdraw=lambda: told.append("withdrawn"))
    answer = session._ask(b"call", 7, lambda: -1)
    assert answer.held_ns >= 2 * LATE_NS
    first, second = (n for n, word in enumerate(told) if word == "answered")
    assert first < told.index("freeze") < told.index("withdrawn") < second


def test_an_answer_with_another_number_is_none() -> None:
    session = Answering(wire.Done(8, 1000.0, ()), late)
    with pytest.raises(FaultError) as caught:
        session._ask(b"call", 7, lambda: -1)
    assert caught.value.fault.verdict is Verdict.VIOLATION


REASON = wire.frame(
    wire.Reply.ERROR, wire.pack_error(wire.ErrorCode.SYMBOL, "line 3: not permitted")
)


@pytest.mark.parametrize(
    ("said", "verdict", "words"),
    [
        (REASON, Verdict.COMPILE_ERROR, "line 3: not permitted"),
        (b"", Verdict.RUNTIME_ERROR, "ended between calls"),
        (REASON[:-1], Verdict.RUNTIME_ERROR, "ended between calls"),
    ],
)
def test_what_a_process_said_before_it_ended_is_heard(
    said: bytes, verdict: Verdict, words: str
) -> None:
    session = Ending(said)
    with pytest.raises(FaultError) as caught:
        session._send(b"more")
    assert caught.value.fault.verdict is verdict
    assert words in caught.value.fault.reason
