"""What the supervisor sees of a call that passes the gate, with a thread as the runner."""

from __future__ import annotations

import ctypes
import dataclasses
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gpu_runner.data import wire
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.supervisor.build.build import build_support
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.gate import LOOKS, LOOKS_EACH, Gate

NUMBER, SIZE = 2**62 + 5, 512
CALL = wire.Call(
    NUMBER,
    (wire.Argument(ArgumentKind.OUTPUT, SIZE, output_offset=1024),),
    0,
    0,
    1024,
    1024 + SIZE,
)
WORK_S, SPUN_S = 0.004, 0.02

Work = Callable[[], None]


@pytest.fixture(scope="module")
def support(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    config = SupervisorConfig(
        kind=DeviceKind.CPU, device="cpu", cache_folder=folder, allow_unjailed=True
    )
    return build_support(config)


class Passage:
    """A gate, its outputs, and a runner that may be made to pass."""

    def __init__(self, support: Path) -> None:
        self.support, self.outputs = support, Arena("outputs")
        self.outputs.resize(4096)
        self.outputs.view[:] = b"\xab" * 4096
        self.gate = Gate(support, self.outputs)
        self.ours, self.theirs = socket.socketpair()

    def write(self) -> None:
        self.outputs.view[1024 : 1024 + SIZE] = bytes(SIZE)

    def passed(self, before: Work, work: Work, after: Work = lambda: None) -> Gate:
        """The gate after a call that does this before, in and after it."""
        library = ctypes.CDLL(str(self.support))
        page = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(self.gate.page.view)))
        watched = threading.Event()

        def run() -> None:
            before()
            library.kb_gate_enter(page, ctypes.c_uint64(NUMBER))
            work()
            library.kb_gate_leave(page, ctypes.c_uint64(NUMBER))
            watched.wait()
            after()

        self.gate.prepare(CALL)
        runner = threading.Thread(target=run)
        runner.start()
        self.gate.watch(self.ours.fileno(), 5)
        watched.set()
        runner.join()
        assert self.gate.is_passed
        return self.gate


@pytest.fixture
def passage(support: Path) -> Iterator[Passage]:
    made = Passage(support)
    with closing(made.outputs), closing(made.gate), made.ours, made.theirs:
        yield made


@pytest.mark.parametrize("seconds", [WORK_S, 3 * SPUN_S])
def test_what_a_call_takes_is_seen_and_no_more(passage: Passage, seconds: float) -> None:
    def work() -> None:
        passage.write()
        time.sleep(seconds)

    began_ns = time.monotonic_ns()
    gate = passage.passed(lambda: time.sleep(seconds), work)
    assert seconds * 1e9 <= gate.time_ns <= time.monotonic_ns() - began_ns - seconds * 1e9
    assert gate.is_final()


def test_every_output_is_looked_at_and_a_large_one_most(passage: Passage) -> None:
    large, small = (1 << 20, 0), (4, 1 << 20)
    arguments = tuple(
        wire.Argument(ArgumentKind.OUTPUT, size, output_offset=at) for size, at in (large, small)
    )
    passage.gate.prepare(dataclasses.replace(CALL, arguments=arguments))
    assert len(passage.gate._places) == LOOKS
    in_small = sum(place >= large[0] for place in passage.gate._places)
    assert LOOKS_EACH <= in_small <= LOOKS_EACH + 1  # one more by a chance of 1 in 10,000


def test_what_is_written_after_the_end_is_seen(passage: Passage) -> None:
    assert not passage.passed(lambda: None, lambda: None, passage.write).is_final()


def test_an_end_that_was_said_ahead_is_no_end(passage: Passage) -> None:
    """Whoever knows the call's number may say that it is over; its outputs are not there then."""
    leave = ctypes.CDLL(str(passage.support)).kb_gate_leave
    page = ctypes.addressof(ctypes.c_char.from_buffer(passage.gate.page.view))

    def ahead() -> None:
        leave(ctypes.c_void_p(page), ctypes.c_uint64(NUMBER))

    assert not passage.passed(ahead, lambda: None, passage.write).is_final()


@pytest.mark.parametrize("said", [b"", b"an answer"])
def test_who_answers_or_dies_without_passing_is_not_waited_for(
    passage: Passage, said: bytes
) -> None:
    passage.theirs.send(said) if said else passage.theirs.close()
    passage.gate.prepare(CALL)
    passage.gate.watch(passage.ours.fileno(), 60)
    assert not passage.gate.is_passed


def test_nobody_is_waited_for_without_end(passage: Passage) -> None:
    passage.gate.prepare(CALL)
    passage.gate.watch(passage.ours.fileno(), 2 * SPUN_S)
    assert not passage.gate.is_passed
