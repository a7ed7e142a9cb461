"""Serves calls to functions over tensors: a submission's or a baseline's."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.verdict import Direction
from gpu_runner.data.wire import (
    READY_BODY,
    Argument,
    ArgumentKind,
    Call,
    Command,
    Done,
    Reply,
    frame,
    pack_done,
    read_frame,
    unpack_burst,
    unpack_call,
)
from gpu_runner.engine import torch_settings
from gpu_runner.engine.arena import Arena
from gpu_runner.engine.clock import Clock, make_clock
from gpu_runner.engine.device_memory import MappedArena
from gpu_runner.engine.heap import Poison, keep_freed_memory
from gpu_runner.engine.module import Module
from gpu_runner.engine.placement import Placement
from gpu_runner.engine.prepared import Folder
from gpu_runner.engine.returned import copy_out, record_of, returned_tensors
from gpu_runner.engine.subject import Baseline, Extension, Null, Prepared, Subject

_SETUP_LIMIT_BYTES = 64 << 20  # the supervisor is trusted; a task's files come with it
_WARM_CALLS = 6  # chosen: by then what is compiled, loaded or cached is there
_BEGINNING_BYTES = 64 << 10  # chosen: many times what the first message has
_READ = (ArgumentKind.INPUT, ArgumentKind.INOUT)
_WRITTEN = (ArgumentKind.OUTPUT, ArgumentKind.INOUT)


@dataclass(frozen=True)
class Beginning:
    """What the runner is told when it is to begin (see `torch_runner`)."""

    role: Sequence[str]
    sizes: Sequence[int]
    descriptors: Sequence[int]  # of inputs, outputs, what is run, and where a rehearsal leaves it

    @classmethod
    def receive(cls, handles: socket.socket) -> Beginning:
        """Wait for it. Raises `EOFError` if the supervisor hangs up."""
        told, descriptors, _, _ = socket.recv_fds(handles, _BEGINNING_BYTES, 4)
        if not told:
            raise EOFError
        words = json.loads(told)
        return cls(words["role"], words["sizes"], descriptors)


@dataclass(frozen=True)
class Arenas:
    """Where calls find their inputs, which on a CPU are read-only, and leave their outputs."""

    inputs: Arena | MappedArena
    outputs: Arena | MappedArena

    @classmethod
    def open(cls, beginning: Beginning) -> Arenas:
        """Map what was handed over."""
        inputs, outputs = beginning.descriptors[:2]
        if beginning.sizes:
            first, second = beginning.sizes
            return cls(MappedArena(inputs, first), MappedArena(outputs, second))
        return cls(Arena(inputs, writable=False), Arena(outputs, writable=True))


class Runner:
    """Serves SETUP and CALL frames."""

    def __init__(self, arenas: Arenas, device: str, clock: Clock) -> None:
        self._arenas = arenas
        self._device = device
        self._clock = clock
        self._poison = Poison(device)
        self._prepared: list[Prepared] = []

    def set_up(self, subject: Subject, setup: dict[str, Any]) -> None:
        """Make one more workload ready; a baseline is compiled and warmed up here."""
        prepared = subject.prepare(setup, self._device)
        self._prepared.append(prepared)
        if not prepared.warm:
            return
        sizes = [entry["nbytes"] for entry in setup["outputs"]]
        for _ in range(_WARM_CALLS):
            tensors = Placement.of(prepared.warm, self._device).load(prepared.inputs)
            self._timed(prepared, tensors, sizes)
        prepared.warm.clear()  # gives their memory back

    def answer(self, command: Command, body: bytes) -> Done:
        """Make the call or the burst of a frame's body; see `call`."""
        if command is Command.BURST:
            return self.burst(*unpack_burst(body))
        return self.call(unpack_call(body))

    def call(self, call: Call) -> Done:
        """One timed call on the inputs of `call`. Raises `CallError`, or whatever was raised."""
        prepared = self._prepared[call.setup]
        places = [a for a in call.arguments if a.kind in _WRITTEN]
        tensors = self._loaded(call, prepared)
        result, time_ns = self._timed(prepared, tensors, [place.nbytes for place in places])
        outputs = self._hand_out(call, prepared, result)
        return Done(call.call_id, time_ns, tuple(map(record_of, outputs)), self._clock.host_ns)

    def burst(self, burst_id: int, calls: Sequence[Call]) -> Done:
        """Calls that the supervisor times: as few other things as possible happen in between."""
        prepared = self._prepared[calls[0].setup]
        loaded = [self._loaded(call, prepared) for call in calls]
        results = [prepared.function(*prepared.arrange(tensors)) for tensors in loaded]
        self._clock.finish()
        for call, result in zip(calls, results, strict=True):
            self._hand_out(call, prepared, result)
        return Done(burst_id, 1.0, ())

    def _loaded(self, call: Call, prepared: Prepared) -> list[Tensor]:
        inputs = [a for a in call.arguments if a.kind in _READ]
        source = self._arenas.inputs.bytes(call.inputs_low, call.inputs_high)
        return Placement(source, _offsets(call, inputs)).load(prepared.inputs)

    def _hand_out(self, call: Call, prepared: Prepared, result: Any) -> list[Tensor]:
        places = [a for a in call.arguments if a.kind in _WRITTEN]
        outputs = returned_tensors(result, self._device)
        copy_out(outputs, prepared.dtypes, places, self._arenas.outputs)
        return outputs

    def _timed(
        self, prepared: Prepared, tensors: list[Tensor], sizes: Sequence[int]
    ) -> tuple[Any, float]:
        function, arguments = prepared.function, prepared.arrange(tensors)
        if prepared.before is not None:
            function, arguments = prepared.before(arguments), ()
        gc.collect()
        self._poison.spread(sizes, self._clock.flush)
        return self._clock.call(function, arguments, prepared.head_start)


def _offsets(call: Call, inputs: Sequence[Argument]) -> list[int]:
    return [argument.input_offset - call.inputs_low for argument in inputs]


def serve(
    control: socket.socket, runner: Runner, load: Callable[[], Subject], clock: Clock
) -> None:
    """Answer frames until END; the subject is loaded after the first READY.

    Raises `CallError`, or whatever was raised.
    """
    stream = control.makefile("rb")

    def read(count: int) -> bytes:
        body = stream.read(count)
        if len(body) < count:
            raise EOFError
        return body

    def ready() -> None:
        control.sendall(frame(Reply.READY, READY_BODY.pack(clock.overhead_ns)))

    ready()
    subject = load()
    while True:
        kind, body = read_frame(read, _SETUP_LIMIT_BYTES)
        match kind:
            case Command.SETUP:
                runner.set_up(subject, json.loads(body))
                gc.freeze()
                ready()
            case Command.CALL | Command.BURST:
                done = runner.answer(Command(kind), body)
                control.sendall(frame(Reply.DONE, pack_done(done)))
            case Command.END:
                return


def subject_of(beginning: Beginning, support: Path, device: str) -> Subject:
    """What is to be run; `support` is our own library.

    What a submission has no use for is taken from the process before one is loaded.
    """
    match beginning.role:
        case ["extension", name]:
            if "KERNEL_PROFILED" not in os.environ:  # a profiler around us needs more
                confine(support, device)
            return Extension(Path(f"/proc/self/fd/{beginning.descriptors[2]}"), name)
        case ["module", direction, is_rehearsed]:
            return _module(beginning, Direction(direction), support, device, is_rehearsed)
        case ["baseline", "empty", _]:
            return Null()
        case ["baseline", kind, direction]:
            return Baseline(kind, Direction(direction))
    raise ValueError(f"cannot run {' '.join(beginning.role)}")


def _module(
    beginning: Beginning, direction: Direction, support: Path, device: str, manner: str
) -> Module:
    """The submission's module with what was prepared of it; only a rehearsal may start programs."""
    folder = Folder()
    folder.unpack(beginning.descriptors[2])
    folder.use()
    if manner == "rehearsed":
        folder.programs.remember()
    else:
        folder.programs.recall()
        if "KERNEL_PROFILED" not in os.environ:
            confine(support, device)
    return Module(folder.source, direction)


def confine(support: Path, device: str) -> None:
    """Give up processes, programs and sockets for good. Raises `OSError` if that fails."""
    status = ctypes.CDLL(str(support)).kb_confine(ctypes.c_int(device == "cuda"))
    if status != 0:
        raise OSError(status, "the runner cannot be confined")


def catch_signals(control: socket.socket, inputs: Arena, support: Path) -> None:
    """Have signals that end this process told on `control`, writes to the inputs among them."""
    memory = inputs.whole()
    ctypes.CDLL(str(support)).kb_catch_signals(
        ctypes.c_int(control.fileno()),
        ctypes.c_void_p(memory.data_ptr()),
        ctypes.c_size_t(memory.nbytes),
    )


def run(control: socket.socket, beginning: Beginning, support: Path, device: str) -> None:
    """Measure the clock's overhead before a line of the subject has run, then serve.

    Raises what `serve` raises.
    """
    keep_freed_memory()
    torch_settings.settle(1 if device == "cuda" else 0)
    clock = make_clock(device, support)
    gc.freeze()
    with torch.no_grad():
        opened = Arenas.open(beginning)
        if isinstance(opened.inputs, Arena):
            catch_signals(control, opened.inputs, support)
        runner = Runner(opened, device, clock)
        serve(control, runner, lambda: subject_of(beginning, support, device), clock)
    if beginning.role[-1] == "rehearsed":
        Folder().pack(beginning.descriptors[3])
