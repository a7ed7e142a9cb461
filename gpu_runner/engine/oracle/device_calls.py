"""Draws, poisons and checks the calls of a runner in the device's memory that it maps."""

from __future__ import annotations

import itertools
import select
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.poison import HUGE
from gpu_runner.engine.device import cuda_runtime
from gpu_runner.engine.device.device_memory import create

_POOL_BYTES = 1 << 20  # chosen: noise that seldom repeats
_LEAST_FLUSH_BYTES = 32 << 20  # as in `clock`
_PROBES = 3  # the device's turns: see `completed_ns`
_WORD_BYTES = 8  # of an int64
_AT_ONCE = 16  # chosen: guard bands to look at together; a burst has more than a hundred
_DECOYS = 3  # at most: false inputs before the true ones
_AWAKE_S = 0.1  # chosen: the next call usually comes sooner, and finds the device awake


Guard = tuple[str, str, int, int]
"""Of which output, before or behind it, and its bytes: from, to."""


class DeviceCalls:
    """The inputs and outputs of the calls that were staged last, and what they must still hold."""

    def __init__(self, inputs: int, outputs: int) -> None:
        """Make the memory; `descriptors` and `sizes` are for those who map it."""
        self.inputs, first = create(inputs)
        self.outputs, second = create(outputs)
        self.descriptors = [first, second]
        self.sizes = [self.inputs.numel(), self.outputs.numel()]
        properties = torch.cuda.get_device_properties()
        flush = max(2 * properties.L2_cache_size, _LEAST_FLUSH_BYTES)
        self._flush = torch.empty(flush, dtype=torch.uint8, device="cuda")
        self._small = torch.zeros(64, device="cuda")
        self._pool = torch.empty(0, dtype=torch.uint8, device="cuda")
        self._calls: Sequence[dict[str, Any]] = ()
        self._drawn: list[list[Tensor]] = []
        self._junk = torch.empty(_POOL_BYTES, dtype=torch.uint8, device="cuda")
        self.probes_ns: list[int] = []
        self.forget()

    def forget(self) -> None:
        """Fill all of the memory with noise, so that a new process finds nothing of older calls.

        Nothing behind an input is zero by nature either.
        """
        self._calls, self._drawn, self._changed = (), [], ""
        self._junk = torch.randint(0, 256, (_POOL_BYTES,), dtype=torch.uint8, device="cuda")
        self._scribble(self.inputs, 0, self.sizes[0])
        self._scribble(self.outputs, 0, self.sizes[1])
        torch.cuda.synchronize()

    def completed_ns(self) -> int:
        """When the last of some trifles was done, and so other processes' work before it.

        The first may come in between, by the turns in which a device works for two processes. Then
        the other one has a whole turn before the next: all of its work, or enough to be seen.
        """
        for _ in range(_PROBES):
            self._small.zero_()
            torch.cuda.synchronize()
        return time.monotonic_ns()

    def probe(self) -> None:
        """Time a trifle: it takes long where another process has work on the device."""
        for _ in range(_PROBES):
            began = time.perf_counter_ns()
            self._small.zero_()
            torch.cuda.synchronize()
            self.probes_ns.append(time.perf_counter_ns() - began)

    def mislead(self, calls: Sequence[dict[str, Any]], seed: int) -> None:
        """Change the inputs to nonsense some times: work that waits for a change starts too soon.

        Each time the device is probed, so that such work is seen.
        """
        offsets = [offset for call in calls for offset in call["inputs"]]
        if not offsets:
            return
        high = min(max(offsets) + _POOL_BYTES, self.sizes[0])
        for turn in range(1 + seed % _DECOYS):
            self._junk.add_(1 + turn)
            self._scribble(self.inputs, min(offsets), high)
            self.probe()

    def _scribble(self, memory: Tensor, low: int, high: int) -> None:
        whole = (high - low) // _POOL_BYTES * _POOL_BYTES
        if whole:
            memory[low : low + whole].view(-1, _POOL_BYTES).copy_(self._junk)
        memory[low + whole : high] = self._junk[: high - low - whole]

    def stage(self, calls: Sequence[dict[str, Any]], drawn: list[list[Tensor]]) -> None:
        """Put the drawn tensors of each call where it expects them, in-out ones among outputs."""
        self._calls, self._drawn, self._changed = calls, drawn, ""
        for call, tensors in zip(calls, drawn, strict=True):
            for tensor, offset in zip(tensors, call["inputs"], strict=True):
                _place(self.inputs, offset, tensor).copy_(_bytes(tensor))
        for call in calls:
            for read, written, size in call["inout"]:
                self.outputs[written : written + size] = self.inputs[read : read + size]
        self.probe()

    def poison(self, low: int, high: int, seed: int) -> None:
        """Fill outputs[low:high] with huge random values."""
        generator = torch.Generator(device="cuda").manual_seed(seed)
        self._pool = torch.randint(
            0, 256, (_POOL_BYTES,), dtype=torch.uint8, device="cuda", generator=generator
        ).bitwise_or_(HUGE)
        whole = (high - low) // _POOL_BYTES * _POOL_BYTES
        pattern = self._pool.roll(-(low % _POOL_BYTES))
        if whole:
            self.outputs[low : low + whole].view(-1, _POOL_BYTES).copy_(pattern.expand(1, -1))
        self.outputs[low + whole : high] = pattern[: high - low - whole]

    def make_cold(self) -> None:
        """Fill the L2 cache with other bytes, and let no line of it persist."""
        cuda_runtime.reset_persisting_cache()
        self._flush.fill_(0x5A)
        torch.cuda.synchronize()

    def withdraw(self) -> None:
        """Leave nothing of the inputs where they are, once it is known whether they were changed.

        Whoever copies outputs to their places afterwards has nothing else to copy.
        """
        self._changed = self._changed_input()
        if offsets := [offset for call in self._calls for offset in call["inputs"]]:
            self._scribble(self.inputs, min(offsets), self._end_of_inputs())
        self._drawn = []
        torch.cuda.synchronize()

    def check(self) -> dict[str, str]:
        """Names of an output whose guard bands, and of an input whose bytes, have changed."""
        guards = [guard for call in self._calls for guard in _guards(call)]
        for at in range(0, len(guards), _AT_ONCE):
            some = guards[at : at + _AT_ONCE]
            for name, where, *_ in itertools.compress(
                some, changed_guards(self.outputs, self._pool, some)
            ):
                return {"guard": name, "where": where, "input": ""}
        return {"guard": "", "where": "", "input": self._changed or self._changed_input()}

    def _changed_input(self) -> str:
        """The name of an input that no longer holds what was staged; of none that is withdrawn."""
        rows = [
            (name, differs(_place(self.inputs, offset, tensor), _bytes(tensor)))
            for call, tensors in zip(self._calls, self._drawn, strict=False)
            for name, offset, tensor in zip(call["names"], call["inputs"], tensors, strict=True)
        ]
        differ = torch.stack([differs for _, differs in rows]).tolist() if rows else []
        return next((str(name) for (name, _), found in zip(rows, differ, strict=True) if found), "")

    def _end_of_inputs(self) -> int:
        return max(
            int(offset) + tensor.nbytes
            for call, tensors in zip(self._calls, self._drawn, strict=True)
            for offset, tensor in zip(call["inputs"], tensors, strict=True)
        )

    def copy_out(self, begin: int, nbytes: int) -> Tensor:
        """Bytes of the outputs."""
        return self.outputs[begin : begin + nbytes]


def _guards(call: dict[str, Any]) -> Iterator[Guard]:
    size = call["guard"]
    for name, begin, end in call["outputs"]:
        yield name, "before", begin - size, begin
        yield name, "behind", end, end + size


def changed_guards(outputs: Tensor, pool: Tensor, guards: Sequence[Guard]) -> list[bool]:
    """Which of them don't repeat the pool, by a single look; all are of the same size."""
    found = torch.stack([outputs[low:high] for *_, low, high in guards])
    begins = torch.tensor([low % len(pool) for *_, low, _ in guards], device=pool.device)
    positions = begins[:, None] + torch.arange(found.shape[1], device=pool.device)
    changed: list[bool] = (found != pool[positions % len(pool)]).any(1).tolist()
    return changed


def differs(some: Tensor, others: Tensor) -> Tensor:
    """Whether bytes differ, as a tensor: nothing waits for it. Eight at a time, where that fits."""
    if not (some.numel() | some.data_ptr() | others.data_ptr()) % _WORD_BYTES:
        some, others = some.view(torch.int64), others.view(torch.int64)
    return (some != others).any()


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _place(memory: Tensor, offset: int, tensor: Tensor) -> Tensor:
    return memory[offset : offset + tensor.nbytes]


def wait_awake(word: socket.socket) -> None:
    """Wait for a byte; at first without sleeping, for to be woken takes longer than short work."""
    looks = select.poll()
    looks.register(word, select.POLLIN)
    deadline = time.monotonic() + _AWAKE_S
    while not looks.poll(0) and time.monotonic() < deadline:
        pass
    word.recv(1)
