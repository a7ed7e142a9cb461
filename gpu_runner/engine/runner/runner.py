"""Serves calls to functions over tensors: a submission's or a baseline's."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.static.module_compilers import names_extensions
from gpu_runner.data.verdict import Direction
from gpu_runner.data.wire import (
    COPY_BODY,
    READY_BODY,
    Argument,
    ArgumentKind,
    Call,
    Command,
    Done,
    ErrorCode,
    Reply,
    frame,
    pack_done,
    read_frame,
    unpack_burst,
    unpack_call,
    unpack_repeat,
)
from gpu_runner.engine.device import torch_settings
from gpu_runner.engine.device.heap import Poison, keep_freed_memory
from gpu_runner.engine.device.recorded import Recorder
from gpu_runner.engine.runner.again import Again, PlacedCall
from gpu_runner.engine.runner.asking import Asking
from gpu_runner.engine.runner.bursts import Bursts
from gpu_runner.engine.runner.clock import Clock, make_clock
from gpu_runner.engine.runner.mapped_arena import MappedArena
from gpu_runner.engine.runner.module import Module
from gpu_runner.engine.runner.passage import Coming, HandedInputs, Passage
from gpu_runner.engine.runner.placement import Placement
from gpu_runner.engine.runner.prepared import Folder, form_of
from gpu_runner.engine.runner.returned import CallError, copy_out, record_of, returned_tensors
from gpu_runner.engine.runner.subject import Baseline, Extension, Null, Prepared, Subject
from gpu_runner.engine.runner.triton_stages import TritonStages

_SETUP_LIMIT_BYTES = 64 << 20  # the supervisor is trusted; a task's files come with it
_WARM_CALLS = 6  # chosen: by then what is compiled, loaded or cached is there
_BEGINNING_BYTES = 64 << 10  # chosen: many times what the first message has
_MOST_DESCRIPTORS = 8  # chosen: more than there are kinds of them
_PAGE_BYTES = 4096  # of Linux on x86-64; larger pages are touched more often than they need
_INPUT_RETURNED = "an output shares memory with an input: write it to a tensor of its own"
_READ = (ArgumentKind.INPUT, ArgumentKind.INOUT)
_WRITTEN = (ArgumentKind.OUTPUT, ArgumentKind.INOUT)


@dataclass(frozen=True)
class Beginning:
    """What the runner is told when it is to begin (see `torch_runner`)."""

    role: Sequence[str]
    sizes: Mapping[str, int]  # of memory for inputs and outputs
    descriptors: Mapping[str, int]

    @classmethod
    def receive(cls, handles: socket.socket) -> Beginning:
        """Wait for it. Raises `EOFError` if the supervisor hangs up."""
        told, descriptors, _, _ = socket.recv_fds(handles, _BEGINNING_BYTES, _MOST_DESCRIPTORS)
        if not told:
            raise EOFError
        words = json.loads(told)
        named = dict(zip(words["descriptors"], descriptors, strict=True))
        return cls(words["role"], words["sizes"], named)


@dataclass(frozen=True)
class Arenas:
    """Where calls find their inputs, which on a CPU are read-only.

    outputs: where a device's results are copied to; a CPU's stay where the call has left them, and
    the supervisor reads them there.
    """

    inputs: HandedInputs | MappedArena
    outputs: MappedArena | None = None

    @classmethod
    def open(cls, beginning: Beginning, support: Path, handles: socket.socket) -> Arenas:
        """Map what was handed over, or reserve a place for what will come by `handles`."""
        descriptors, sizes = beginning.descriptors, beginning.sizes
        if "inputs" not in descriptors:
            pocket = descriptors["pocket"]
            return cls(HandedInputs(support, handles.fileno(), sizes["inputs"], pocket))
        inputs, outputs = (MappedArena(descriptors[n], sizes[n]) for n in ("inputs", "outputs"))
        return cls(inputs, outputs)


class Runner:
    """Serves SETUP, CALL, BURST and COPY frames.

    Whatever a call needs besides its work is done before it stands at the gate. Its inputs come
    while it stands there, and once the gate is open, nothing happens but the call. A device's
    outputs are copied to their places later, when its inputs are gone.
    """

    def __init__(
        self, arenas: Arenas, device: str, clock: Clock, gate: Passage, *, strict: bool
    ) -> None:
        """strict: refuse memory of an input as an output, which a baseline may return."""
        self._arenas, self._gate, self._strict = arenas, gate, strict
        self._device = device
        self._clock = clock
        self._poison = Poison(device)
        self._prepared: list[Prepared] = []
        self._recorder = Recorder()
        self._again = Again(gate, clock, self._recorder)
        self._bursts = Bursts(self, self._recorder, device)
        self._kept: list[Tensor] = []  # the last call's outputs, until they have been read
        self._left: Callable[[], list[Tensor]] = list  # copies what calls on a device have returned

    def set_up(self, subject: Subject, setup: dict[str, Any]) -> None:
        """Make one more workload ready; a baseline is compiled and warmed up here."""
        prepared = subject.prepare(setup, self._device)
        self._prepared.append(prepared)
        if not prepared.warm:
            return
        sizes = [entry["nbytes"] for entry in setup["outputs"]]
        for _ in range(_WARM_CALLS):
            tensors = Placement.of(prepared.warm, self._device).load(prepared.inputs)
            self._tidy(sizes)
            self._clock.wake()
            self._timed(prepared, prepared.arrange(tensors))
        prepared.warm.clear()  # gives their memory back

    def answer(self, command: Command, body: bytes) -> Done:
        """Make the call or the burst of a frame's body.

        Raises `CallError`, or whatever was raised.
        """
        if command is Command.COPY:
            return self._copy(*COPY_BODY.unpack(body))
        self._kept, self._left = [], list
        if command is Command.BURST:
            return self._burst(*unpack_burst(body))
        if command in (Command.REPEAT, Command.GRAPH):
            return self._repeated(command, *unpack_repeat(body))
        return self._call(unpack_call(body))

    def _call(self, call: Call) -> Done:
        one = self._placed(call)
        arguments, sizes = one.prepared.arrange(one.tensors), one.sizes
        self._arenas.inputs.let_go()
        self._tidy(sizes)
        self._clock.settle()  # so that a device is idle when the inputs come
        result, time_ns = self._through(one, arguments)
        if self._device == "cpu":
            self._kept = returned_tensors(result, self._device)
        else:
            self._left = partial(self._copied, one, result)
        records = tuple(map(record_of, self._kept))
        return Done(call.call_id, time_ns, records, self._clock.host_ns)

    def _through(self, one: PlacedCall, arguments: tuple[object, ...]) -> tuple[object, float]:
        """Make the call once the gate opens; what it returned, and its time in ns."""
        number, prepared = one.call.call_id, one.prepared
        coming = self._arenas.inputs.coming(one.call, prepared.owned)
        way = number, coming, lambda: self._keep_warm(one.sizes)
        if self._device == "cpu" and prepared.before is None:
            result, ns = self._gate.call(*way, prepared.function, arguments)
            return result, self._clock.net_ns(ns)
        self._gate.wait(*way)
        prepared.fill()
        result, time_ns = self._timed(prepared, arguments)
        self._gate.leave(number, result)
        return result, time_ns

    def _burst(self, burst_id: int, calls: Sequence[Call]) -> Done:
        """Calls that the supervisor times: as few other things as possible happen in between."""
        coming = [self._placed(call) for call in calls]
        burst = self._bursts.of(coming)
        self._clock.settle()
        self._gate.wait(burst_id, Coming(), lambda: None)
        results = burst()
        self._clock.finish()
        self._left = partial(self._bursts.copy, coming, results)
        return Done(burst_id, 1.0, ())

    def _repeated(self, command: Command, number: int, times: int, call: Call) -> Done:
        """A call that nobody times, made so many times or as a CUDA graph."""
        one = self._placed(call)
        if command is Command.GRAPH:
            results = self._again.graph(number, one)
            self._left = partial(self._copied, one, results[0]) if results else list
            return Done(number, 1.0, ())
        self._arenas.inputs.let_go()
        self._tidy(one.sizes)
        coming = self._arenas.inputs.coming(call, one.prepared.owned)
        result = self._again.repeat(number, one, coming, times)
        if self._device == "cpu":
            self._kept = returned_tensors(result, self._device)
        else:
            self._left = partial(self._copied, one, result)
        return Done(number, 1.0, tuple(map(record_of, self._kept)))

    def _copy(self, number: int) -> Done:
        """Copy what was returned to its places; the records are those of the last call."""
        outputs = self._left()
        self._left = list
        self._clock.finish()
        return Done(number, 1.0, tuple(map(record_of, outputs)))

    def _copied(self, one: PlacedCall, result: object) -> list[Tensor]:
        outputs = self.hand_out(one, result)
        self._bursts.look(one.call.setup, outputs)
        return outputs

    def _placed(self, call: Call) -> PlacedCall:
        prepared = self._prepared[call.setup]
        inputs = [a for a in call.arguments if a.kind in _READ]
        memory, places = self._arenas.inputs, _offsets(call, inputs)
        tensors = Placement(memory.of(call), places).load(prepared.inputs)
        if prepared.owned and isinstance(memory, HandedInputs):
            written = Placement(memory.of(call, own=True), places).load(prepared.inputs)
            tensors = [written[n] if n in prepared.owned else t for n, t in enumerate(tensors)]
        return PlacedCall(call, prepared, tensors)

    def hand_out(self, one: PlacedCall, result: object) -> list[Tensor]:
        """See `bursts.Memory`."""
        outputs, inputs = returned_tensors(result, self._device), self._arenas.inputs
        assert self._arenas.outputs is not None
        if self._strict and isinstance(inputs, MappedArena):
            written = [a for a in one.call.arguments if a.kind in _WRITTEN]
            for argument, output in zip(written, outputs, strict=False):
                if inputs.has(output) and not inputs.comes_back(argument, output):
                    raise CallError(ErrorCode.INPUT_RETURNED, _INPUT_RETURNED)
        copy_out(outputs, one.prepared.dtypes, one.places, self._arenas.outputs)
        return outputs

    def is_ours(self, tensor: Tensor) -> bool:
        """See `bursts.Memory`."""
        inputs = self._arenas.inputs
        return not isinstance(inputs, MappedArena) or inputs.has(tensor)

    def _tidy(self, sizes: Sequence[int]) -> None:
        """No garbage is left for the call, and the memory that it will be given holds noise."""
        gc.collect()
        self._poison.spread(sizes, self._clock.flush)

    def _keep_warm(self, sizes: Sequence[int]) -> None:
        """What keeps the call's surroundings from growing cold while it waits."""
        self._clock.wake()
        if self._device == "cpu":
            some = [torch.empty(size, dtype=torch.uint8) for size in sizes]
            for block in some:
                block[::_PAGE_BYTES].amax() if len(block) else None
            self._gate.rehearse(some)

    def _timed(self, prepared: Prepared, arguments: tuple[object, ...]) -> tuple[object, float]:
        function = prepared.function
        if prepared.before is not None:
            function, arguments = prepared.before(arguments), ()
        return self._clock.call(function, arguments, prepared.head_start)


def _offsets(call: Call, inputs: Sequence[Argument]) -> list[int]:
    return [argument.input_offset - call.inputs_low for argument in inputs]


def serve(
    control: socket.socket, runner: Runner, load: Callable[[], Subject], clock: Clock
) -> None:
    """Answer frames until END; the subject is loaded for the first of them.

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
    select.select([control], [], [])  # nothing of a submission runs before a first request
    subject = load()
    while True:
        kind, body = read_frame(read, _SETUP_LIMIT_BYTES)
        match kind:
            case Command.SETUP:
                runner.set_up(subject, json.loads(body))
                gc.freeze()
                ready()
            case Command.SCRATCH:
                control.sendall(frame(Reply.READY, READY_BODY.pack(clock.scratch_bytes())))
            case Command.END:
                return
            case _:
                done = runner.answer(Command(kind), body)
                control.sendall(frame(Reply.DONE, pack_done(done)))


def subject_of(beginning: Beginning, support: Path, device: str) -> Subject:
    """What is to be run; `support` is our own library.

    What a submission has no use for is taken from the process before one is loaded.
    """
    match beginning.role:
        case ["extension", name]:
            if "KERNEL_PROFILED" not in os.environ:  # a profiler around us needs more
                confine(support, device)
            return Extension(Path(f"/proc/self/fd/{beginning.descriptors['library']}"), name)
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
    descriptors = beginning.descriptors
    folder, form = Folder(), form_of(descriptors["source"])
    folder.unpack(descriptors["library"])
    folder.place(form)
    folder.use()
    workshop = Asking(descriptors["workshop"]) if manner == "rehearsed" else None
    if any(map(names_extensions, [form.text, *form.files.values()])):
        folder.extensions(workshop).take_over()
    if workshop is not None:
        if device == "cuda":
            TritonStages(workshop).take_over()
        folder.programs.remember()
    else:
        folder.programs.recall()
        if "KERNEL_PROFILED" not in os.environ:
            confine(support, device)
    return Module(folder.source, form, direction)


def confine(support: Path, device: str) -> None:
    """Give up processes, programs and sockets for good. Raises `OSError` if that fails."""
    status = ctypes.CDLL(str(support)).kb_confine(ctypes.c_int(device == "cuda"))
    if status != 0:
        raise OSError(status, "the runner cannot be confined")


def catch_signals(control: socket.socket, inputs: HandedInputs, support: Path) -> None:
    """Have signals that end this process told on `control`, writes to the inputs among them."""
    memory = inputs.whole()
    ctypes.CDLL(str(support)).kb_catch_signals(
        ctypes.c_int(control.fileno()),
        ctypes.c_void_p(memory.data_ptr()),
        ctypes.c_size_t(memory.nbytes),
    )


def run(control: socket.socket, handles: socket.socket, support: Path, device: str) -> None:
    """Measure the clock's overhead before a line of the subject has run, then serve.

    Raises what `serve` raises, and `EOFError` if the supervisor hangs up first.
    """
    beginning = Beginning.receive(handles)
    keep_freed_memory()
    torch_settings.settle(1 if device == "cuda" else 0)
    clock = make_clock(device, support)
    gc.freeze()
    with torch.no_grad():
        opened = Arenas.open(beginning, support, handles)
        if isinstance(opened.inputs, HandedInputs):
            catch_signals(control, opened.inputs, support)
        gate = Passage(support, beginning.descriptors["gate"])
        strict = beginning.role[0] != "baseline"
        runner = Runner(opened, device, clock, gate, strict=strict)
        serve(control, runner, lambda: subject_of(beginning, support, device), clock)
    if beginning.role[-1] == "rehearsed":
        Folder().pack(beginning.descriptors["keeping"])
