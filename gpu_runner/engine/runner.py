"""Serves calls to functions over tensors: a submission's or a baseline's."""

from __future__ import annotations

import gc
import json
import socket
from collections.abc import Callable, Sequence
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
    unpack_call,
)
from gpu_runner.engine import torch_settings
from gpu_runner.engine.arena import Arena
from gpu_runner.engine.clock import Clock, make_clock
from gpu_runner.engine.heap import Poison, keep_freed_memory
from gpu_runner.engine.placement import Placement
from gpu_runner.engine.returned import copy_out, record_of, returned_tensors
from gpu_runner.engine.subject import Baseline, Extension, Prepared, Subject

_SETUP_LIMIT_BYTES = 64 << 20  # the coordinator is trusted; a task's files come with it
_WARM_CALLS = 6
_READ = (ArgumentKind.INPUT, ArgumentKind.INOUT)
_WRITTEN = (ArgumentKind.OUTPUT, ArgumentKind.INOUT)


class Runner:
    """Serves SETUP and CALL frames."""

    def __init__(self, arenas: Sequence[Arena], device: str, clock: Clock) -> None:
        self._inputs, self._outputs, self._echo = arenas
        for arena in arenas:
            arena.pinned = device == "cuda"
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
        placement = Placement.for_tensors(prepared.warm, self._device)
        for _ in range(_WARM_CALLS):
            sizes = [entry["nbytes"] for entry in setup["outputs"]]
            tensors = placement.load(prepared.inputs)
            self._timed(prepared, tensors, sizes)
        prepared.warm.clear()  # gives their memory back

    def call(self, call: Call) -> Done:
        """One timed call on the inputs of `call`. Raises `CallError`, or whatever was raised."""
        prepared = self._prepared[call.setup]
        inputs = [a for a in call.arguments if a.kind in _READ]
        places = [a for a in call.arguments if a.kind in _WRITTEN]
        source = self._inputs.bytes(call.inputs_low, call.inputs_high)
        placement = Placement(source, _offsets(call, inputs), self._device)
        tensors = placement.load(prepared.inputs)
        result, time_ns = self._timed(prepared, tensors, [place.nbytes for place in places])
        outputs = returned_tensors(result, self._device)
        copy_out(outputs, prepared.dtypes, places, self._outputs)
        self._echo.bytes(call.inputs_low, call.inputs_high).copy_(placement.content())
        return Done(call.call_id, time_ns, tuple(map(record_of, outputs)))

    def _timed(
        self, prepared: Prepared, tensors: list[Tensor], sizes: Sequence[int]
    ) -> tuple[Any, float]:
        function, arguments = prepared.function, prepared.arrange(tensors)
        if prepared.before is not None:
            function, arguments = prepared.before(arguments), ()
        gc.collect()
        self._poison.spread(sizes, self._clock.flush)
        for tensor in tensors:
            self._clock.flush(tensor)
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
            case Command.CALL:
                done = runner.call(unpack_call(body))
                control.sendall(frame(Reply.DONE, pack_done(done)))
            case Command.END:
                return


def subject_of(words: Sequence[str]) -> Subject:
    """The subject that the command line names; the last word is the support library."""
    match words:
        case ["extension", path, name, _]:
            return Extension(Path(path), name)
        case ["baseline", kind, direction, _]:
            return Baseline(kind, Direction(direction))
    raise ValueError(f"bad arguments: {' '.join(words)}")


def run(
    control: socket.socket, descriptors: Sequence[int], words: Sequence[str], device: str
) -> None:
    """Measure the clock's overhead before a line of the subject has run, then serve.

    descriptors: of the arenas of inputs, outputs and echo. words: see `subject_of`. Raises what
    `serve` raises.
    """
    inputs, outputs, echo = descriptors
    arenas = (
        Arena(inputs, writable=False),
        Arena(outputs, writable=True),
        Arena(echo, writable=True),
    )
    keep_freed_memory()
    torch_settings.settle()
    clock = make_clock(device, Path(words[-1]))
    gc.disable()
    gc.freeze()
    with torch.no_grad():
        serve(control, Runner(arenas, device, clock), lambda: subject_of(words), clock)
