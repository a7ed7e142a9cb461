"""Memory of a CUDA device, owned by the oracle: a runner maps it and works in it."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterator, Sequence

from gpu_runner.data.protocol import DEVICE_BUSY_NS
from gpu_runner.data.verdict import Verdict
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.supervisor.build.build import build_support
from gpu_runner.supervisor.device.gpu_state import CoTenants
from gpu_runner.supervisor.host import living, nvml
from gpu_runner.supervisor.host.arena import GUARD_BYTES
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.conformance import on_workload
from gpu_runner.supervisor.measure.layout import Layout
from gpu_runner.supervisor.measure.staging import Batch
from gpu_runner.supervisor.oracle.client import Completion, Oracle, OracleError
from gpu_runner.supervisor.oracle.subject import of_work
from gpu_runner.supervisor.runner.answer import Returned
from gpu_runner.supervisor.runner.conditions import Arenas
from gpu_runner.supervisor.runner.faults import Fault, FaultError, InDoubt, NoRoom, RunnerUnfit
from gpu_runner.supervisor.runner.gate import NOTHING, Gate, Handed
from gpu_runner.supervisor.runner.preemption import Interrupted

PAUSE_S = 0.1  # chosen: far below `GONE_S`
GONE_S = 5.0
"""For so long the work of a process that was killed may still be seen on the device."""

LOOKS = 10
"""So often the device must then be found idle before work on it was that process's own."""

MOST_KEPT = 0.4  # chosen: part of the device's memory that leaves enough for a measurement
_MUCH = 0.2  # chosen: half of what may be kept; a kernel that needs the rest may need more

PROBES = 3  # in a group, one after each step of staging; the first may wait for the step itself


class LeftWork(InDoubt):
    """The device was at work between calls, and nobody else is known to use it."""


class DeviceMemory:
    """Asks the oracle to draw, poison, make cold, check and take; see `staging.Memory`."""

    def __init__(self, oracle: Oracle, rng: random.Random, config: SupervisorConfig) -> None:
        """Nothing of ours may be on the GPU but what waits (`living`). `begin` makes arenas."""
        self._oracle, self._rng = oracle, rng
        self._index, self._config = config.index, config
        self._co_tenants = CoTenants(config.index, lambda: living.holders(config))
        self._arenas: Arenas | None = None
        self._first: Batch | None = None
        self._gate = Gate(build_support(config))  # lets torch runners begin

    @property
    def arenas(self) -> Arenas:
        """See `Memory.arenas`."""
        if self._arenas is None:
            raise RuntimeError("the device's memory has not been allocated")
        return self._arenas

    def begin(self, inputs: int, outputs: int, first: Batch) -> None:
        """See `Memory.begin`."""
        self.grow(inputs, outputs)
        self._first = first
        if self._staged(first, drawn=True) > DEVICE_BUSY_NS:
            raise _shared("something else is using the device", self._co_tenants.now())

    def grow(self, inputs: int, outputs: int) -> None:
        """See `Memory.grow`; the smaller memory stays with the oracle."""
        held = self._arenas
        if held is None or held.inputs.size < inputs or held.outputs.size < outputs:
            shared = self._oracle.share(inputs, outputs)
            self._let_go()
            self._arenas = Arenas(*shared, self._gate)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """See `Memory.watched`."""
        self._oracle.forget_calls()
        self._gate.forget()
        try:
            yield
        except LeftWork:
            self._look_again()
            raise
        except Interrupted:
            self._oracle.rest()  # until its next turn
            raise
        except FaultError as error:
            ran_out = error.fault.verdict is Verdict.MEMORY_LIMIT
            if ran_out and "cuda" in error.fault.reason.lower():
                self._refuse_if_full()
            raise

    def _look_again(self) -> None:
        """Raise `RunnerUnfit` if the device is at work although the runner is gone.

        Whoever shares the device by turns may be idle at any one look.
        """
        deadline = time.monotonic() + GONE_S
        while self._busy() and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
        for _ in range(LOOKS):
            busy, others = self._busy(), self._co_tenants.now()
            if busy or others:
                raise _shared("something else was using the device during calls", others)
            time.sleep(PAUSE_S)

    def _busy(self) -> bool:
        if self._first is None:
            raise RuntimeError("the device's memory has not been allocated")
        return self._staged(self._first, drawn=False) > DEVICE_BUSY_NS

    def stage(self, batch: Batch, *, drawn: bool = True, handed: bool = False) -> Handed:
        """See `Memory.stage`; also refuses a runner that has left the device at work.

        Raises `RunnerUnfit` where others use it.
        """
        with self._room():
            busy_ns = self._staged(batch, drawn=drawn)
        self._refuse_work(busy_ns)
        return NOTHING

    def _refuse_work(self, busy_ns: int) -> None:
        if busy_ns <= DEVICE_BUSY_NS:
            return
        if others := self._co_tenants.now():
            raise _shared("the device was busy between calls, and other processes use it", others)
        reason = "left work running on the device after its call"
        raise LeftWork(Fault(Verdict.VIOLATION, reason))

    def _staged(self, batch: Batch, *, drawn: bool) -> int:
        """Stage, and return how long a trifle took at least after one of the steps."""
        answer = self._oracle.stage(
            [_call(batch, index) for index in range(len(batch.calls) if drawn else 0)],
            **of_work(batch.workload, batch.direction),
            low=batch.calls[0].outputs_low,
            high=batch.calls[-1].outputs_high,
            poison=self._rng.getrandbits(62),
        )
        probes = [int(value) for value in answer["probes_ns"]]
        groups = [probes[at : at + PROBES] for at in range(0, len(probes), PROBES)]
        return max(min(group) for group in groups)

    def completion(self) -> contextlib.AbstractContextManager[Completion]:
        """See `Memory.completion`."""
        return self._oracle.completion()

    def withdraw(self) -> None:
        """See `Memory.withdraw`."""
        with self._room():
            self._oracle.withdraw()

    def is_roomy(self) -> bool:
        """See `Memory.is_roomy`."""
        self._oracle.rest()
        return nvml.memory_used(self._index) <= MOST_KEPT * nvml.memory_total(self._index)

    def is_quiet(self) -> bool:
        """See `Memory.is_quiet`."""
        is_busy = self._busy()
        if is_busy and (others := self._co_tenants.now()):
            raise _shared("the device was busy while a call was halted", others)
        return not is_busy

    def check(self, batch: Batch) -> None:
        """See `Memory.check`."""
        with self._room():
            answer = self._oracle.check()
        if name := answer["guard"]:
            place = f"{answer['where']} its output {name!r} {on_workload(batch.workload)}"
            reason = f"wrote out of bounds: {place}"
            raise FaultError(Fault(Verdict.VIOLATION, reason))
        if name := answer["input"]:
            what = f"changed its input {name!r} {on_workload(batch.workload)}"
            reason = f"{what}: inputs must not be changed"
            raise FaultError(Fault(Verdict.VIOLATION, reason))
        self._refuse_work(min(int(value) for value in answer["probes_ns"]))

    def sample(
        self, layout: Layout, offsets: Sequence[int], returned: Returned | None = None
    ) -> None:
        """See `Memory.sample`; a device's outputs are always in its arena."""
        pairs = zip(layout.outputs, offsets, strict=True)
        with self._room():
            self._oracle.sample([(region.offset, at, region.nbytes) for region, at in pairs])

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        """A kernel that fills the device leaves the oracle no room, which is the kernel's fault.

        The oracle may lack it for a tensor (torch's words) or for code that CUDA loads (CUDA's).
        Raises `NoRoom` if others may have taken the memory.
        """
        try:
            yield
        except OracleError as error:
            if "OutOfMemoryError" not in str(error) and "error: out of memory" not in str(error):
                raise
            self._refuse_if_full()
            fault = Fault(Verdict.MEMORY_LIMIT, "left no memory free on the device")
            raise FaultError(fault) from None

    def _refuse_if_full(self) -> None:
        """Raise `NoRoom` if evaluations that wait, or strangers, hold much of the memory."""
        held = nvml.compute_memory(self._index)
        others = living.without(held, [self._oracle.pid, os.getpid()])
        if sum(held[pid] for pid in others) > _MUCH * nvml.memory_total(self._index):
            strangers = f": {names}" if (names := ", ".join(self._co_tenants.now()[:5])) else ""
            reason = "no memory is free on the device, and other processes hold much of it"
            raise NoRoom(f"{reason}{strangers}") from None

    def close(self) -> None:
        """See `Memory.close`."""
        self._gate.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._arenas is not None:
            for arena in (self._arenas.inputs, self._arenas.outputs):
                with contextlib.suppress(OSError):
                    os.close(arena.descriptor)


def _shared(what: str, others: Sequence[str]) -> RunnerUnfit:
    return RunnerUnfit(f"{what}: {', '.join(others[:5]) or 'nobody that is seen from here'}")


def _call(batch: Batch, index: int) -> dict[str, object]:
    layout, call = batch.layouts[index], batch.calls[index]
    specs = layout.description.outputs
    return {
        "seed": batch.seeds[index],
        "inputs": [region.offset for region in layout.inputs],
        "names": [tensor["name"] for tensor in layout.description.tensors()],
        "inout": [
            [a.input_offset, a.output_offset, a.nbytes]
            for a in call.arguments
            if a.kind is ArgumentKind.INOUT
        ],
        "outputs": [
            [spec.name, region.offset, region.end]
            for spec, region in zip(specs, layout.outputs, strict=True)
        ],
        "guard": GUARD_BYTES,
    }
