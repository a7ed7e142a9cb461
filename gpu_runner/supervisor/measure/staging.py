"""Where the tensors of calls lie, and how they get there while the runner stands still."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gpu_runner.data import wire
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Direction, Verdict
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.supervisor.host.arena import Arena, Poison
from gpu_runner.supervisor.host.foreign_memory import (
    ForeignMemory,
    NotAllowed,
    Span,
    Unreadable,
    mapped_at,
    span_of,
)
from gpu_runner.supervisor.measure.conformance import check_guards
from gpu_runner.supervisor.measure.handed import Flusher, HandedInputs
from gpu_runner.supervisor.measure.layout import Layout
from gpu_runner.supervisor.oracle.client import Completion, Oracle
from gpu_runner.supervisor.runner.answer import Returned
from gpu_runner.supervisor.runner.conditions import Arenas
from gpu_runner.supervisor.runner.faults import Fault, FaultError, RunnerUnfit
from gpu_runner.supervisor.runner.gate import NOTHING, Gate, Handed

_WRITTEN = (ArgumentKind.OUTPUT, ArgumentKind.INOUT)


class ReturnedOutputs:
    """Takes outputs from a stopped process: nobody copies anything inside the timed call."""

    def __init__(self, support: Path) -> None:
        """`support` as of `ForeignMemory`."""
        self._memory = ForeignMemory(support)

    def read(
        self,
        returned: Returned,
        inputs: HandedInputs,
        layout: Layout,
        where: tuple[memoryview, Sequence[int]],
    ) -> None:
        """Copy each output to its offset in a view, as dense bytes; `inputs` are the call's.

        Raises `FaultError` if an output is memory of the inputs or of another output: then the
        call has not done the work of writing it.
        """
        spans = _spans(returned, layout)
        try:
            _check_owner(returned, inputs, layout, spans)
            for record, spec, at in zip(
                returned.done.outputs, layout.description.outputs, where[1], strict=True
            ):
                with where[0][at : at + spec.nbytes] as place:
                    tensor = record.address, spec.shape, record.strides
                    self._memory.read(returned.pid, *tensor, place)
        except Unreadable:
            reason = "returned a tensor whose memory cannot be read"
            raise FaultError(Fault(Verdict.VIOLATION, reason)) from None
        except NotAllowed as error:
            reason = (
                "this host doesn't let the supervisor read the memory of processes that it started"
            )
            raise RunnerUnfit(f"{reason} ({error}); Python kernels need this") from None


def _check_owner(
    returned: Returned, inputs: HandedInputs, layout: Layout, spans: Sequence[Span]
) -> None:
    names = [output.name for output in layout.description.outputs]
    written = [a for a in returned.call.arguments if a.kind in _WRITTEN]
    for mapped, offset in mapped_at(returned.pid, inputs.descriptor):
        for span, argument, name in zip(spans, written, names, strict=True):
            at = span.low - mapped.low + offset + inputs.first
            comes_back = argument.kind is ArgumentKind.INOUT and at == argument.input_offset
            if span.overlaps(mapped) and not comes_back:
                what = f"{name} shares memory with an input: write it to a tensor of its own"
                raise FaultError(Fault(Verdict.VIOLATION, what))
    named = zip(names, spans, strict=True)
    for (name, span), (other, beside) in itertools.combinations(named, 2):
        if span.overlaps(beside):
            what = f"{name} and {other} are the same memory: write each to a tensor of its own"
            raise FaultError(Fault(Verdict.VIOLATION, what))


def _spans(returned: Returned, layout: Layout) -> list[Span]:
    """Of the outputs; they have the dtypes and shapes that are expected."""
    spans = []
    for record, spec in zip(returned.done.outputs, layout.description.outputs, strict=True):
        count = 1
        for size in spec.shape:
            count *= size
        item = spec.nbytes // count if count else 1
        spans.append(span_of(record.address, spec.shape, record.strides, item))
    return spans


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
        """Reserve memory for single calls, in bytes, and stage one before any runner starts."""
        ...

    def grow(self, inputs: int, outputs: int) -> None:
        """Make room for bursts of calls before the next runner starts."""
        ...

    def stage(self, batch: Batch, *, drawn: bool = True, handed: bool = False) -> Handed:
        """Draw the inputs, poison the outputs, and put both out of the caches.

        Without `drawn` the inputs stay as they are: a kernel that does nothing reads none. handed:
        the runner cannot see the inputs yet. Returns what to hand to it when the call begins.
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

    def withdraw(self) -> None:
        """Leave nothing of a call's inputs on a device, before outputs are copied there."""
        ...

    def is_roomy(self) -> bool:
        """Whether a device has memory enough for others while a runner stands still in a call.

        What the oracle doesn't use is given back.
        """
        ...

    def is_quiet(self) -> bool:
        """Whether a device is at rest while a runner stands still in the middle of a call.

        The call's outputs are poisoned anew. Raises `RunnerUnfit` where others use the device.
        """
        ...

    def check(self, batch: Batch) -> None:
        """Raise `FaultError` if a call has written outside its outputs, or to its inputs."""
        ...

    def sample(
        self, layout: Layout, offsets: Sequence[int], returned: Returned | None = None
    ) -> None:
        """Copy a call's outputs to these offsets of the memory that no runner sees.

        returned: where they are, if not in the outputs' arena. Raises `FaultError` if they cannot
        be there, and `RunnerUnfit` where this host does not let us look.
        """
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
        self._poison = Poison(rng)
        self._flusher = Flusher(support)
        self._handed = HandedInputs(self._flusher)
        self.arenas = Arenas(self._inputs, self._outputs, self._gate, self._handed.pocket)
        self._reader = ReturnedOutputs(support)

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

    def grow(self, inputs: int, outputs: int) -> None:
        """See `Memory.grow`; on a CPU no calls are made together."""

    def stage(self, batch: Batch, *, drawn: bool = True, handed: bool = False) -> Handed:
        """See `Memory.stage`; if inputs are handed over, nobody needs the outputs' arena."""
        inputs, outputs = self._inputs.view, self._outputs.view
        for layout, seed in zip(batch.layouts, batch.seeds, strict=True):
            if drawn:
                offsets = [region.offset for region in layout.inputs]
                self._oracle.fill(batch.workload, batch.direction, seed, offsets)
        if handed:
            return self._handed.pack(inputs, batch.calls[0], batch.layouts[0].inputs)
        self._poison.renew()
        low, high = batch.calls[0].outputs_low, batch.calls[-1].outputs_high
        self._poison.fill(outputs, low, high)
        for call in batch.calls:
            _copy_in_out(call, inputs, outputs)
        for layout in batch.layouts:
            self._flusher.flush(inputs, layout.inputs)
            self._flusher.flush(outputs, layout.outputs)
        return NOTHING

    def watched(self) -> AbstractContextManager[None]:
        """See `Memory.watched`; nobody else can be in this memory."""
        self._poison.fill(self._inputs.view, 0, len(self._inputs.view))
        self._handed.forget()
        for arena in (self._handed.pocket, self._outputs, self._gate):
            arena.forget()
        return nullcontext()

    def completion(self) -> AbstractContextManager[None]:
        """See `Memory.completion`: a process that stands still does no work."""
        return nullcontext()

    def withdraw(self) -> None:
        """Nothing: outputs are read where a call has left them."""

    def is_roomy(self) -> bool:
        """See `Memory.is_roomy`; here is no device."""
        return True

    def is_quiet(self) -> bool:
        """See `Memory.is_quiet`; what stands still does no work here."""
        return True

    def check(self, batch: Batch) -> None:
        """See `Memory.check`; the hardware keeps inputs from being changed."""
        if self._handed.is_packed:  # what the call wrote is memory of its own
            return
        for layout in batch.layouts:
            check_guards(self._outputs.view, self._poison, layout, batch.workload)

    def sample(
        self, layout: Layout, offsets: Sequence[int], returned: Returned | None = None
    ) -> None:
        """See `Memory.sample`."""
        samples = self._samples.view
        if returned is not None:
            self._reader.read(returned, self._handed, layout, (samples, offsets))
            return
        for at, region in zip(offsets, layout.outputs, strict=True):
            samples[at : at + region.nbytes] = self._outputs.view[region.offset : region.end]

    def close(self) -> None:
        """See `Memory.close`."""
        self._handed.close()
        self._outputs.close()
        self._gate.close()


def _copy_in_out(call: wire.Call, inputs: memoryview, outputs: memoryview) -> None:
    for argument in call.arguments:
        if argument.kind is ArgumentKind.INOUT:
            read, written, size = argument.input_offset, argument.output_offset, argument.nbytes
            outputs[written : written + size] = inputs[read : read + size]
