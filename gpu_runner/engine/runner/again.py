"""Calls that nobody times: one again and again, or recorded as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from gpu_runner.data.wire import Argument, ArgumentKind, Call
from gpu_runner.engine.device.recorded import Recorder
from gpu_runner.engine.runner.clock import Clock
from gpu_runner.engine.runner.passage import Coming, Passage
from gpu_runner.engine.runner.subject import Prepared

WRITTEN = (ArgumentKind.OUTPUT, ArgumentKind.INOUT)


@dataclass(frozen=True)
class PlacedCall:
    """A call that was announced: its tensors are in place, and hold nothing of it yet."""

    call: Call
    prepared: Prepared
    tensors: list[Tensor]

    @property
    def sizes(self) -> list[int]:
        """Bytes of its outputs."""
        return [place.nbytes for place in self.places]

    @property
    def places(self) -> list[Argument]:
        """Where its outputs belong."""
        return [a for a in self.call.arguments if a.kind in WRITTEN]


class Again:
    """Makes calls whose times don't count, once the gate opens for them."""

    def __init__(self, gate: Passage, clock: Clock, recorder: Recorder) -> None:
        self._gate, self._clock, self._recorder = gate, clock, recorder
        self._replay: Callable[[], list[object]] | None = None

    def repeat(self, number: int, one: PlacedCall, coming: Coming, times: int) -> object:
        """Make a call so many times with the same inputs; what the last one returned."""
        arguments = one.prepared.arrange(one.tensors)
        self._clock.settle()
        self._gate.wait(number, coming, lambda: None)
        one.prepared.fill()
        result: object = None
        for _ in range(times):
            result = one.prepared.function(*arguments)
        self._clock.finish()
        self._gate.leave(number, result)
        return result

    def graph(self, number: int, one: PlacedCall) -> list[object]:
        """Record a call, which does none of its work; the next time, make it from the graph.

        Returns what it returned, once it was made. Raises whatever keeps it from being recorded.
        """
        if self._replay is None:
            self._replay = self._recorder.recorded([partial(made, one)])
            self._gate.wait(number, Coming(), lambda: None)
            return []
        self._gate.wait(number, Coming(), lambda: None)
        results = self._replay()
        self._clock.finish()
        return results


def made(one: PlacedCall) -> object:
    """Make a call whose inputs are there."""
    arguments = one.prepared.arrange(one.tensors)
    one.prepared.fill()
    return one.prepared.function(*arguments)
