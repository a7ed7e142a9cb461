"""Calls of a kernel one after the other, which the supervisor times together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations
from typing import Protocol

from torch import Tensor

from gpu_runner.data.protocol import CALLS_BEFORE_BURSTS
from gpu_runner.engine.device.recorded import Recorder
from gpu_runner.engine.runner.again import PlacedCall, made
from gpu_runner.engine.runner.returned import returned_tensors

Results = list[object]

_MOST_HELD_BYTES = 1 << 30  # chosen: of all workloads, and far less than a device has


class Memory(Protocol):
    """Where the results of calls end up."""

    def is_ours(self, tensor: Tensor) -> bool:
        """Whether a tensor lies in memory that was chosen for its call."""
        ...

    def hand_out(self, one: PlacedCall, result: object) -> list[Tensor]:
        """Copy what a call returned to its places."""
        ...


class Bursts:
    """Records bursts where that is possible: their calls, and the copies of what they return.

    The copies are made later, when the inputs are gone. Recorded, they take the device's time and
    none of the host's, which differs from one process to the next.

    Some kernels return the same memory in each call, such as those that replay a CUDA graph. There,
    the next call would write over what one returned. So their results are copied after each call of
    a burst but the last, whose result is still there at the end. As many copies as of other kernels
    count as its time.
    """

    def __init__(self, memory: Memory, recorder: Recorder, device: str) -> None:
        self._memory, self._recorder, self._device = memory, recorder, device
        self._looked: dict[int, list[tuple[set[int], list[Tensor]]]] = {}
        self._keeping: set[int] = set()  # workloads with such kernels
        self._calls: Callable[[], Results] = list  # whose graph holds what they return
        self._copies: Callable[[], Results] | None = None

    def of(self, coming: Sequence[PlacedCall]) -> Callable[[], Results]:
        """What makes these calls once their inputs are there."""
        self._copies = None
        self._calls = self._made(coming)
        return self._calls

    def copy(self, coming: Sequence[PlacedCall], results: Results) -> list[Tensor]:
        """Copy the results of these calls that have not been copied; returns the last one's."""
        if self._copies is not None:
            self._copies()
            return returned_tensors(results[-1], self._device)
        both, outputs = list(zip(coming, results, strict=True)), list[Tensor]()
        for one, result in both[-1:] if coming[0].call.setup in self._keeping else both:
            outputs = self._memory.hand_out(one, result)
        return outputs

    def _made(self, coming: Sequence[PlacedCall]) -> Callable[[], Results]:
        setup, recorder = coming[0].call.setup, self._recorder
        calls = [partial(made, one) for one in coming]
        copied = [*(partial(self._made_and_copied, one) for one in coming[:-1]), calls[-1]]
        if self._device == "cpu" or not all(one.prepared.recordable for one in coming):
            plain = copied if setup in self._keeping else calls
            return lambda: [call() for call in plain]
        if setup not in self._keeping:
            burst = recorder.record(setup, calls)
            returned = [returned_tensors(r, self._device) for r in recorder.results]
            self._compare(setup, map(self._places, returned))
            if setup not in self._keeping:
                both = zip(coming, recorder.results, strict=False)  # none where nothing is recorded
                copies = [partial(self._memory.hand_out, *one) for one in both]
                self._copies = recorder.record(setup, copies) if copies else None
                return burst
        return recorder.record(setup, copied)

    def look(self, setup: int, outputs: list[Tensor]) -> None:
        """Compare the outputs of the first calls, whose memory is held until then.

        A kernel may return other memory in its first call, before it records a graph. A graph of
        PyTorch's may take back the memory of outputs that are held, which then have no address.
        """
        looked = self._looked.setdefault(setup, [])
        if len(looked) == CALLS_BEFORE_BURSTS:
            return
        looked.append((self._places(outputs), outputs if self._is_roomy() else []))
        self._compare(setup, [places for places, _ in looked])
        if len(looked) == CALLS_BEFORE_BURSTS:
            looked[:] = [(set(), [])] * CALLS_BEFORE_BURSTS

    def _is_roomy(self) -> bool:
        """Whether to hold more. What isn't held may seem the same later, which does no harm."""
        held = (t.nbytes for one in self._looked.values() for _, outputs in one for t in outputs)
        return sum(held) < _MOST_HELD_BYTES

    def _compare(self, setup: int, calls: Iterable[set[int]]) -> None:
        if any(one & other for one, other in combinations(calls, 2)):
            self._keeping.add(setup)

    def _places(self, outputs: Sequence[Tensor]) -> set[int]:
        return {tensor.data_ptr() for tensor in outputs if self._is_own(tensor)}

    def _is_own(self, tensor: Tensor) -> bool:
        return tensor.numel() > 0 and not self._memory.is_ours(tensor)

    def _made_and_copied(self, one: PlacedCall) -> object:
        result = made(one)
        self._memory.hand_out(one, result)
        return result
