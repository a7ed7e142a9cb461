"""What the supervisor sees of a call that passes the gate, with a thread as the runner."""

from __future__ import annotations

import ctypes
import dataclasses
import mmap
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch

from gpu_runner.data import wire
from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.engine.runner.passage import HandedInputs as RunnersInputs
from gpu_runner.engine.runner.passage import Passage as RunnersPassage
from gpu_runner.supervisor.build.build import build_support
from gpu_runner.supervisor.host.arena import Arena, Region
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.handed import Flusher, HandedInputs
from gpu_runner.supervisor.runner.faults import FaultError
from gpu_runner.supervisor.runner.gate import LOOKS, LOOKS_EACH, Gate

NUMBER, SIZE = 2**62 + 5, 512
CALL = wire.Call(
    NUMBER, (wire.Argument(ArgumentKind.OUTPUT, SIZE, output_offset=1024),), 0, 0, 1024, 1024 + SIZE
)
WORK_S, SPUN_S = 0.004, 0.02
SLEEP_SHARE = 1 / 64  # several times `kKbSleepShare`: others may run, too

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

    def passed(self, before: Work, work: Work, after: Work = lambda: None, pid: int = 0) -> Gate:
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

        self.gate.prepare(CALL, pid)
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
    seen_from = seconds * 1e9 * (1 - SLEEP_SHARE)  # it sleeps a little while it waits for long
    assert seen_from <= gate.time_ns <= time.monotonic_ns() - began_ns - seconds * 1e9
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


@pytest.mark.parametrize("ahead", [False, True])
def test_what_is_written_after_the_end_is_seen(passage: Passage, ahead: bool) -> None:
    """Whoever knows the call's number may say ahead that it is over: its outputs are not there."""
    leave = ctypes.CDLL(str(passage.support)).kb_gate_leave
    page = ctypes.addressof(ctypes.c_char.from_buffer(passage.gate.page.view))

    def end() -> None:
        leave(ctypes.c_void_p(page), ctypes.c_uint64(NUMBER))

    before = end if ahead else lambda: None
    assert not passage.passed(before, lambda: None, passage.write).is_final()


@pytest.mark.parametrize(
    ("flags", "value", "is_shared"),
    [(mmap.MAP_SHARED, 1, True), (mmap.MAP_SHARED, 0, False), (mmap.MAP_PRIVATE, 1, False)],
)
def test_outputs_in_shared_memory_are_seen(
    passage: Passage, flags: int, value: int, is_shared: bool
) -> None:
    """An input is there, and may be gone once the process has stopped.

    A huge page of zeros that nobody has written to looks like shared memory, too.
    """
    output = torch.frombuffer(mmap.mmap(-1, SIZE, flags), dtype=torch.uint8)

    def work() -> None:
        output.fill_(value)
        passage.gate.page.view[256:264] = output.data_ptr().to_bytes(8, "little")

    gate = passage.passed(lambda: None, work, pid=os.getpid())
    assert gate.is_final()
    assert gate.is_shared == is_shared


@pytest.mark.parametrize(
    ("said", "patience_s"), [(b"", 60), (b"an answer", 60), (None, 2 * SPUN_S)]
)
def test_who_answers_or_dies_or_never_passes_is_not_waited_for(
    passage: Passage, said: bytes | None, patience_s: float
) -> None:
    if said is not None:
        passage.theirs.send(said) if said else passage.theirs.close()
    passage.gate.prepare(CALL)
    passage.gate.watch(passage.ours.fileno(), patience_s)
    assert not passage.gate.is_passed


INPUT_AT = 4096 + 256  # a call's input in the arena


def looks_and_copies(
    passage: Passage,
    memory: tuple[socket.socket, int],
    call: wire.Call,
    output: torch.Tensor,
    early: list[bool],
) -> None:
    """What a torch runner does at the gate; `early`: at each look, whether something has come."""
    here = RunnersPassage(passage.support, passage.gate.page.descriptor)
    handles, pocket = memory
    inputs = RunnersInputs(passage.support, handles.fileno(), call.inputs_high, pocket)
    tensor = inputs.of(call)[INPUT_AT - call.inputs_low :][:8]

    def look() -> None:
        sent = bool(select.select([handles], [], [], 0)[0])
        early.append(sent or (call.is_pocketed and bool(tensor.any())))

    def copy(source: torch.Tensor) -> dict[str, object]:
        output[:8] = source
        return {"nothing": None, "one": [(output,)]}

    here.call(NUMBER, inputs.coming(call), look, copy, (tensor,))


@pytest.mark.parametrize("size", [8, 1 << 20])
def test_a_python_call_is_handed_its_inputs_with_the_opening(passage: Passage, size: int) -> None:
    """It stands at the gate and looks; what it says of its outputs is what it left there."""
    ours, theirs = socket.socketpair()
    handed = HandedInputs(Flusher(passage.support))
    told = wire.Argument(ArgumentKind.INPUT, size, input_offset=INPUT_AT)
    call = dataclasses.replace(
        CALL,
        arguments=(*CALL.arguments, told),
        inputs_low=4096,
        inputs_high=-(-(INPUT_AT + size) // 4096) * 4096,
    )
    output = torch.zeros(SIZE, dtype=torch.uint8)
    early: list[bool] = []

    memory = theirs, handed.pocket.descriptor
    runner = threading.Thread(target=looks_and_copies, args=(passage, memory, call, output, early))
    runner.start()
    assert passage.gate.is_reached(NUMBER, passage.ours.fileno(), 5)
    arena = memoryview(bytearray(bytes(range(1, 251)) * 5000))
    given = handed.pack(arena, call, [Region(INPUT_AT, size)])
    passage.gate.prepare(call, os.getpid())
    passage.gate.watch(passage.ours.fileno(), 5, 7, given, ours.fileno())
    runner.join()
    assert passage.gate.is_passed
    assert passage.gate.is_final()
    assert passage.gate.told(1) == [output.data_ptr()]
    assert output[:8].tolist() == arena[INPUT_AT : INPUT_AT + 8].tolist()
    assert len(early) >= 7
    assert not any(early[:7])
    output.fill_(3)
    assert not passage.gate.is_final()
    handed.close()
    ours.close()
    theirs.close()


HEADLESS = """
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print(flush=True)
ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)  # exit
"""


def test_a_process_without_its_first_thread_is_to_blame_and_not_the_host(support: Path) -> None:
    """Such a process shows nothing of its memory, but goes on."""
    with (
        subprocess.Popen([sys.executable, "-c", HEADLESS], stdout=subprocess.PIPE) as child,
        closing(Gate(support, Arena("outputs"))) as gate,
    ):
        assert child.stdout is not None
        child.stdout.readline()
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        with pytest.raises(FaultError) as caught:
            gate.prepare(CALL, child.pid)
        assert caught.value.fault.verdict is Verdict.VIOLATION
        child.kill()
