"""Where the tensors of calls lie, and how they get there while the runner stands still."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gpu_runner.data import wire
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.supervisor.host.arena import Arena, Poison
from gpu_runner.supervisor.measure.conformance import check_guards
from gpu_runner.supervisor.measure.flush import Flusher
from gpu_runner.supervisor.measure.layout import Layout
from gpu_runner.supervisor.oracle.client import Completion, Oracle
from gpu_runner.supervisor.runner.gate import Gate
from gpu_runner.supervisor.runner.session import Arenas


@dataclass(frozen=True)
class Batch:
    """Calls of one workload that are released together."""

    workload: Workload
    direction: Direction
    layouts: Sequence[Layout]
    seeds: Sequence[int]
    calls: Sequence[wire.Call]

    @classmethod
    def of(
        cls,
        workload: Workload,
        direction: Direction,
        layouts: Sequence[Layout],
        setup: int,
        rng: random.Random,
    ) -> Batch:
        """A call for each layout, of the setup with that number."""
        calls = [layout.call(draw_id(rng), setup) for layout in layouts]
        return cls(workload, direction, layouts, [draw_seed(rng) for _ in layouts], calls)


def draw_id(rng: random.Random) -> int:
    """The number of a call, which cannot be acknowledged before it is known."""
    return rng.getrandbits(63)


def draw_seed(rng: random.Random) -> int:
    """The seed of a call's inputs."""
    return rng.getrandbits(62)


class Memory(Protocol):
    """The shared memory of an evaluation; all but `arenas` needs a runner that is stopped."""

    @property
    def arenas(self) -> Arenas:
        """What a runner inherits."""
        ...

    def begin(self, inputs: int, outputs: int, first: Batch) -> None:
        """Set the sizes in bytes, once, and stage a call before any runner starts."""
        ...

    def stage(self, batch: Batch, *, drawn: bool = True) -> None:
        """Draw the inputs, poison the outputs, and put both out of the caches.

        Without `drawn` the inputs stay as they are: a kernel that does nothing reads none.
        """
        ...

    def watched(self) -> AbstractContextManager[None]:
        """What surrounds a runner's whole life: on a CPU it finds nothing of earlier ones.

        Raises `RunnerUnfit` in place of a fault that was not the runner's, as is known only now.
        """
        ...

    def completion(self) -> AbstractContextManager[Completion | None]:
        """What surrounds a call; says when a device had ended it, None where there is no device."""
        ...

    def check(self, batch: Batch) -> None:
        """Raise `FaultError` if a call has written outside its outputs, or to its inputs."""
        ...

    def sample(self, layout: Layout, offsets: Sequence[int]) -> None:
        """Copy a call's outputs to these offsets of the memory that no runner sees."""
        ...

    def close(self) -> None:
        """Give the memory back."""
        ...


class HostMemory:
    """Anonymous shared files in which a kernel works: inputs are mapped read-only."""

    def __init__(
        self, oracle: Oracle, inputs: Arena, samples: Arena, rng: random.Random, support: Path
    ) -> None:
        """`inputs` and `samples` are the arenas that the oracle was given."""
        self._oracle, self._samples = oracle, samples
        self._inputs, self._outputs = inputs, Arena("outputs")
        self._gate = Gate(support, self._outputs)
        self.arenas = Arenas(self._inputs, self._outputs, self._gate)
        self._poison = Poison(rng)
        self._flusher = Flusher(support)

    def begin(self, inputs: int, outputs: int, first: Batch) -> None:
        """See `Memory.begin`.

        The first stage makes the oracle map the inputs. From then on nobody else can map them
        writable, whatever a runner does with the descriptor that it inherits.
        """
        self._inputs.resize(inputs)
        self._outputs.resize(outputs)
        self._outputs.seal_size()
        self._poison.fill(self._inputs.view, 0, inputs)
        self.stage(first)
        self._inputs.seal()

    def stage(self, batch: Batch, *, drawn: bool = True) -> None:
        """See `Memory.stage`."""
        inputs, outputs = self._inputs.view, self._outputs.view
        for layout, seed in zip(batch.layouts, batch.seeds, strict=True):
            if drawn:
                offsets = [region.offset for region in layout.inputs]
                self._oracle.fill(batch.workload, batch.direction, seed, offsets)
        self._poison.renew()
        low, high = batch.calls[0].outputs_low, batch.calls[-1].outputs_high
        self._poison.fill(outputs, low, high)
        for call in batch.calls:
            _copy_in_out(call, inputs, outputs)
        for layout in batch.layouts:
            self._flusher.flush(inputs, layout.inputs)
            self._flusher.flush(outputs, layout.outputs)

    def watched(self) -> AbstractContextManager[None]:
        """See `Memory.watched`; nobody else can be in this memory."""
        self._poison.fill(self._inputs.view, 0, len(self._inputs.view))
        self._outputs.forget()
        self._gate.forget()
        return nullcontext()

    def completion(self) -> AbstractContextManager[None]:
        """See `Memory.completion`: a process that stands still does no work."""
        return nullcontext()

    def check(self, batch: Batch) -> None:
        """See `Memory.check`; the hardware keeps inputs from being changed."""
        for layout in batch.layouts:
            check_guards(self._outputs.view, self._poison, layout, batch.workload)

    def sample(self, layout: Layout, offsets: Sequence[int]) -> None:
        """See `Memory.sample`."""
        outputs = self._outputs.view
        for at, region in zip(offsets, layout.outputs, strict=True):
            self._samples.view[at : at + region.nbytes] = outputs[region.offset : region.end]

    def close(self) -> None:
        """See `Memory.close`."""
        self._outputs.close()
        self._gate.close()


def _copy_in_out(call: wire.Call, inputs: memoryview, outputs: memoryview) -> None:
    for argument in call.arguments:
        if argument.kind is ArgumentKind.INOUT:
            read, written, size = argument.input_offset, argument.output_offset, argument.nbytes
            outputs[written : written + size] = inputs[read : read + size]
