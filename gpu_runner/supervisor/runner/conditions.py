"""What a runner process is given, and what surrounds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.host.arena import Arena, DeviceArena
from gpu_runner.supervisor.oracle.client import Completion
from gpu_runner.supervisor.runner.ahead import TorchProcesses
from gpu_runner.supervisor.runner.gate import Gate

Completing = Callable[[], AbstractContextManager[Completion | None]]


@dataclass(frozen=True)
class Arenas:
    """The shared memory that a runner inherits.

    gate: what timed calls on a CPU pass, and all calls of the torch runner. pocket: where the torch
    runner finds small inputs on a CPU.
    """

    inputs: Arena | DeviceArena
    outputs: Arena | DeviceArena
    gate: Gate | None = None
    pocket: Arena | None = None

    def of_torch(self, kind: DeviceKind) -> Mapping[str, Arena | DeviceArena]:
        """What a torch runner gets, by name. On a CPU, large inputs come with each call instead."""
        if self.gate is None:
            raise ValueError("a torch runner needs a gate")
        memory: dict[str, Arena | DeviceArena] = {"gate": self.gate.page}
        if kind is DeviceKind.CUDA:
            return {**memory, "inputs": self.inputs, "outputs": self.outputs}
        return memory if self.pocket is None else {**memory, "pocket": self.pocket}


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What surrounds a measured process."""

    completion: Completing = nullcontext
    """See `staging.Memory`. A call lasts until a device is idle, whatever was said before."""
    idle_ns: float = 0.0
    """See `Freezer`."""
    is_wanted: Callable[[], bool] = lambda: False
    """Whether somebody more urgent waits for the device; long waits raise `Interrupted` then."""
    withdraw: Callable[[], None] = lambda: None
    """See `staging.Memory`: it comes between a call and the copies of its outputs on a device."""
    torch: TorchProcesses | None = None
    """Where torch runners that were started ahead are."""
    team: int = 0
    """Threads of an OpenMP team at least, on all processors of the host (`processors.team_size`).

    Of a process that is not timed; 0 leaves both to the measured processors.
    """
