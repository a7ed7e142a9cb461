"""A small supervisor: real processes, sockets and shared memory, without jail or protocol."""

from __future__ import annotations

import json
import math
import mmap
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from gpu_runner.data import codec, wire
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.data.wire import Argument, ArgumentKind, Call, Done, Failed
from gpu_runner.supervisor.host.arena import Region
from gpu_runner.supervisor.host.foreign_memory import ForeignMemory
from gpu_runner.supervisor.measure.handed import Flusher, HandedInputs

GUARD = 4096
REPOSITORY = Path(__file__).parents[4]

ROWS_REFERENCE = """
import torch

def make_inputs(N, C):
    return {"input": torch.randn(N, C), "gain": torch.rand(C) + 0.5, "shift": 0.25}

def forward_fn(input, gain, shift):
    return input * gain + shift, input.sum(1)

def backward_fn(grad_output, input, gain):
    return grad_output[0] * gain + grad_output[1][:, None]
"""

SCALED_REFERENCE = """
import torch

def make_inputs(N):
    return {"a": torch.randn(N), "index": torch.randperm(N).int(), "factor": 3.0}

def forward_fn(a, index, factor):
    return a[index.long()] * factor
"""


def make_task(
    reference: str, parameters: dict[str, Any], abi: Abi = Abi.TORCH, **fields: Any
) -> Task:
    """A native task with one workload, `only`."""
    return Task(
        name="example",
        title="Example",
        format=TaskFormat.KBENCH,
        abi=abi,
        workloads=fields.pop("workloads", (Workload(name="only", parameters=parameters),)),
        files={"reference.py": reference},
        **fields,
    )


def rows_task(**fields: Any) -> Task:
    """Two outputs, a plain value among the arguments, and a backward direction."""
    return make_task(
        ROWS_REFERENCE,
        {"N": 7, "C": 33},
        directions=(Direction.FORWARD, Direction.BACKWARD),
        **fields,
    )


def scaled_task(size: int = 100) -> Task:
    """The c ABI, with an int32 input and a scalar."""
    signature = "void scaled(float* out, const float* a, const int* index, int N, float factor)"
    return make_task(SCALED_REFERENCE, {"N": size}, abi=Abi.C, signature=signature)


_OPEN = 64  # offset of the word in `KbGate` that lets a call begin


class Shared:
    """A memfd and a mapping of it."""

    def __init__(self, size: int) -> None:
        self.fd = os.memfd_create("test")
        os.ftruncate(self.fd, size)
        self.map = mmap.mmap(self.fd, size)

    def tensor(self, offset: int, entry: dict[str, Any]) -> torch.Tensor:
        dtype: torch.dtype = getattr(torch, entry["dtype"])
        count = math.prod(entry["shape"])
        flat = torch.frombuffer(self.map, dtype=dtype, count=count, offset=offset)
        return flat.view(entry["shape"])


class Child:
    """A process at the other end of a socket."""

    def __init__(
        self, module: str, shared: Sequence[Shared], words: Sequence[str] = (), *more: int
    ) -> None:
        self.control, theirs = socket.socketpair()
        self.control.settimeout(120)
        numbers = [theirs.fileno(), *(arena.fd for arena in shared), *more]
        program = [sys.executable, "-m", module, *map(str, numbers), *words]
        self.process = subprocess.Popen(program, pass_fds=numbers, cwd=REPOSITORY)
        theirs.close()
        self.stream = self.control.makefile("rb")

    def close(self) -> int:
        self.stream.close()
        self.control.close()
        try:
            return self.process.wait(20)
        finally:
            self.process.kill()


class OracleProcess(Child):
    """Speaks JSON lines."""

    def __init__(self, size: int = 1 << 20) -> None:
        self.inputs, self.samples = Shared(size), Shared(size)
        self.handles, theirs = socket.socketpair()
        with theirs:
            super().__init__("gpu_runner.engine.oracle.oracle_main", (), (), theirs.fileno())

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self.control.sendall((json.dumps({"op": op, **fields}) + "\n").encode())
        answer: dict[str, Any] = json.loads(self.stream.readline())
        return answer

    def close(self) -> int:
        self.handles.close()
        return super().close()

    def load(self, task: Task, device: str = "cpu") -> dict[str, Any]:
        socket.send_fds(self.handles, [b"arenas"], [self.inputs.fd, self.samples.fd])
        return self.ask("load", task=codec.encode(task), device=device)


class RunnerProcess(Child):
    """Speaks frames."""

    def __init__(self, arenas: Sequence[Shared], words: Sequence[str], device: str = "cpu") -> None:
        kind, *rest, support = words
        path, role = (rest[0], rest[1:]) if kind == "extension" else ("", rest)
        self.handles, theirs = socket.socketpair()
        self.inputs, self.outputs = arenas
        with theirs:
            program = "gpu_runner.engine.runner.torch_runner"
            super().__init__(program, (), (support, "-", device, ""), theirs.fileno())
        self.gate = Shared(mmap.PAGESIZE)
        self.support = Path(support)
        self.handed = HandedInputs(Flusher(self.support))
        named = {"gate": self.gate.fd, "pocket": self.handed.pocket.descriptor}
        if path and os.path.exists(path):
            named["library"] = os.open(path, os.O_RDONLY)
        sizes = {"inputs": len(self.inputs.map), "outputs": len(self.outputs.map)}
        told = {"role": [kind, *role], "sizes": sizes, "descriptors": list(named)}
        socket.send_fds(self.handles, [json.dumps(told).encode()], list(named.values()))
        if "library" in named:
            os.close(named["library"])
        self.memory = ForeignMemory(self.support)

    def read(self) -> float | Done | Failed:
        def exactly(count: int) -> bytes:
            body = self.stream.read(count)
            if len(body) < count:
                raise EOFError
            return body

        return wire.unpack_reply(*wire.read_frame(exactly))

    def set_up(self, setup: dict[str, Any]) -> float | Done | Failed:
        self.control.sendall(wire.frame(wire.Command.SETUP, json.dumps(setup).encode()))
        return self.read()

    def call(self, call: Call) -> float | Done | Failed:
        """Make a call whose gate is open, and take its outputs as the supervisor does."""
        read = (ArgumentKind.INPUT, ArgumentKind.INOUT)
        regions = [Region(a.input_offset, a.nbytes) for a in call.arguments if a.kind in read]
        with memoryview(self.inputs.map) as view:
            given = self.handed.pack(view, call, regions)
        for region in given.regions:
            given.place[region.offset : region.end] = given.source[region.offset : region.end]
        if given.descriptor >= 0:
            socket.send_fds(self.handles, [b"."], [given.descriptor])
        self.gate.map[_OPEN : _OPEN + 8] = call.call_id.to_bytes(8, "little")
        self.control.sendall(wire.frame(wire.Command.CALL, wire.pack_call(call)))
        reply = self.read()
        places = [a for a in call.arguments if a.kind is ArgumentKind.OUTPUT]
        records = reply.outputs if isinstance(reply, Done) else ()
        for record, place in zip(records, places, strict=False):
            if record.nbytes == place.nbytes:
                at = place.output_offset
                with memoryview(self.outputs.map)[at : at + place.nbytes] as into:
                    where = record.address, record.shape, record.strides
                    self.memory.read(self.process.pid, *where, into)
        return reply

    def end(self) -> int:
        self.control.sendall(wire.frame(wire.Command.END))
        return self.close()


def flat_entries(arguments: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Entries in order, those of lists included."""
    for entry in arguments:
        if entry["kind"] == "list":
            yield from flat_entries(entry["items"])
        else:
            yield entry


def lay_out(entries: Sequence[dict[str, Any]], shift: int = 256) -> list[int]:
    """Offsets with guards between them."""
    offsets, cursor = [], 0
    for entry in entries:
        cursor = -(-(cursor + GUARD) // 256) * 256 + shift
        offsets.append(cursor)
        cursor += entry["nbytes"]
    return offsets


class Evaluation:
    """One oracle, its arenas, and the layout of one workload; runners come and go."""

    def __init__(self, task: Task, oracle: OracleProcess, device: str = "cpu") -> None:
        self.task, self.oracle, self.device = task, oracle, device
        self.inputs, self.samples = oracle.inputs, oracle.samples
        self.outputs = Shared(len(self.inputs.map))
        self.loaded = self.oracle.load(task, device)
        self.calls = 0

    def describe_raw(self, workload: str = "only", direction: str = "forward") -> dict[str, Any]:
        self.workload, self.direction = workload, direction
        return self.ask("describe", seed=11)

    def describe(self, workload: str = "only", direction: str = "forward") -> dict[str, Any]:
        self.described = self.describe_raw(workload, direction)
        assert self.described["ok"], self.described
        entries = list(flat_entries(self.described["arguments"]))
        self.read = [e for e in entries if e["kind"] in ("tensor", "inout")]
        self.places = lay_out(self.described["outputs"])
        return self.described

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return self.oracle.ask(op, workload=self.workload, direction=self.direction, **fields)

    def setup(self) -> dict[str, Any]:
        return {
            "arguments": self.described["arguments"],
            "outputs": self.described["outputs"],
            "direction": self.direction,
            "workload": self.workload,
            "task": codec.encode(self.task),
        }

    def runner(self, *words: str) -> RunnerProcess:
        return RunnerProcess([self.inputs, self.outputs], words, self.device)

    def fill(self, seed: int, shift: int = 256) -> list[int]:
        offsets = lay_out(self.read, shift)
        answer = self.ask("fill", seed=seed, offsets=offsets)
        assert answer == {"ok": True}, answer
        return offsets

    def call(self, seed: int, shift: int = 256, setup: int = 0) -> Call:
        offsets = self.fill(seed, shift)
        arguments = [
            Argument(ArgumentKind.INPUT, entry["nbytes"], input_offset=offset)
            for entry, offset in zip(self.read, offsets, strict=True)
        ] + [
            Argument(ArgumentKind.OUTPUT, entry["nbytes"], output_offset=offset)
            for entry, offset in zip(self.described["outputs"], self.places, strict=True)
        ]
        self.calls += 1
        high = offsets[-1] + self.read[-1]["nbytes"] + GUARD
        end = self.places[-1] + self.described["outputs"][-1]["nbytes"] + GUARD
        return Call(self.calls, tuple(arguments), offsets[0] - GUARD, high, 0, end, setup)

    def take_and_verify(self, seed: int, *, explain: bool = False) -> dict[str, Any]:
        self.samples.map[:] = self.outputs.map[:]
        outputs = [{"offset": at} for at in self.places]
        return self.ask("verify", seed=seed, outputs=outputs, explain=explain)
