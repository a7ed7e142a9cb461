"""Work on a GPU is held against a submission only where nobody else can have left it."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, cast

import pytest

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind, Direction, Verdict
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.arena import DeviceArena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.nvml import NvmlError
from gpu_runner.supervisor.measure import device_memory
from gpu_runner.supervisor.measure.device_memory import LOOKS, DeviceMemory
from gpu_runner.supervisor.measure.layout import Layout
from gpu_runner.supervisor.measure.staging import Batch
from gpu_runner.supervisor.oracle.client import Description, Oracle, OracleError, OutputSpec
from gpu_runner.supervisor.runner.faults import Fault, FaultError, InDoubt, NoRoom, RunnerUnfit
from gpu_runner.supervisor.runner.preemption import Interrupted

IDLE, BUSY = 30_000, 2_500_000
STRANGER = os.getppid()  # a real process that this one has not started
ELSEWHERE = 1 << 30  # no process here has such a number
OUTPUT = OutputSpec("C", "float32", (4,), (1,), 16)


CONFIG = SupervisorConfig(kind=DeviceKind.CUDA, device="test", index=1)


class Device:
    """A GPU: how long a trifle takes at each look (the last answer stays), and who is on it."""

    def __init__(self) -> None:
        self.times_ns = [IDLE]
        self.looks = 0
        self.pids: list[int] = []
        self.held: dict[int, int] = {}
        self.shared: list[tuple[int, int]] = []
        self.used, self.needed = 0, 0
        self.pid, self.fails = os.getpid(), ""

    def stage(self, calls: object, **_: object) -> Mapping[str, Any]:
        self.looks += 1
        time_ns = self.times_ns.pop(0) if len(self.times_ns) > 1 else self.times_ns[0]
        return {"probes_ns": [9 * time_ns, time_ns, time_ns] + [IDLE] * 3}

    def forget_calls(self) -> None:
        """Nothing lies in this memory."""

    def check(self) -> Mapping[str, Any]:
        raise OracleError(self.fails)

    def share(self, inputs: int, outputs: int) -> tuple[DeviceArena, DeviceArena]:
        self.shared.append((inputs, outputs))
        first, second = (os.open(os.devnull, os.O_RDONLY) for _ in range(2))
        return DeviceArena(first, inputs), DeviceArena(second, outputs)

    def rest(self) -> None:
        self.used = self.needed

    def listed(self, index: int) -> list[int]:
        assert index == 1
        return self.pids

    def undrawn(self, index: int) -> list[int]:
        raise NvmlError(f"GPU {index} draws nothing")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    found = Device()
    monkeypatch.setattr(nvml, "compute_pids", found.listed)
    monkeypatch.setattr(nvml, "compute_memory", lambda index: found.held)
    monkeypatch.setattr(nvml, "memory_total", lambda index: 100)
    monkeypatch.setattr(nvml, "graphics_pids", found.undrawn)
    monkeypatch.setattr(device_memory, "PAUSE_S", 0.0)
    monkeypatch.setattr(device_memory, "GONE_S", 0.05)
    return found


@pytest.fixture
def ours() -> Iterator[int]:
    """A process that this one has started."""
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        yield child.pid
        child.kill()


def batch() -> Batch:
    workload = Workload(name="n4", parameters={"N": 4})
    layouts = Layout.draw(Description((), (OUTPUT,)), random.Random(7))
    return Batch(workload, Direction.FORWARD, layouts, [1], [layouts[0].call(1, 0)])


def begun(device: Device) -> DeviceMemory:
    memory = DeviceMemory(cast(Oracle, device), random.Random(7), CONFIG)
    memory.begin(64, 64, batch())
    return memory


def outcome(device: Device, *times_ns: int, joined_by: int = 0) -> FaultError | RunnerUnfit:
    """What a call ends in before which the device is found busy, and then as `times_ns` say.

    joined_by: a process that comes when the runner has gone.
    """
    memory = begun(device)
    device.times_ns = [BUSY, *times_ns]
    runner = ExitStack()
    if joined_by:
        runner.callback(device.pids.append, joined_by)
    with pytest.raises((FaultError, RunnerUnfit)) as caught, memory.watched(), runner:
        memory.stage(batch())
    return cast(FaultError | RunnerUnfit, caught.value)


@pytest.mark.parametrize("dying", [0, 1])
def test_work_that_goes_with_the_runner_is_its_own(device: Device, ours: int, dying: int) -> None:
    device.pids = [ours]
    error = outcome(device, *[BUSY] * dying, IDLE)
    assert isinstance(error, InDoubt)  # so a fresh process is measured before it's accused
    assert error.fault.verdict is Verdict.VIOLATION
    assert "left work running on the device" in error.fault.reason
    assert device.looks == 2 + 1 + dying + LOOKS


@pytest.mark.parametrize(
    ("strangers", "times_ns", "joined_by", "words"),
    [
        ([STRANGER], [IDLE], 0, f"process {STRANGER} ("),
        ([], [IDLE], STRANGER, f"process {STRANGER} ("),
        # it stays, or comes again without the runner
        ([], [BUSY], 0, "nobody that is seen from here"),
        ([], [IDLE] * 4 + [BUSY, IDLE], 0, "nobody that is seen from here"),
    ],
)
def test_others_on_the_device_are_named_and_nobody_is_accused(
    device: Device, ours: int, strangers: list[int], times_ns: list[int], joined_by: int, words: str
) -> None:
    device.pids = [ours, *strangers]
    error = outcome(device, *times_ns, joined_by=joined_by)
    assert isinstance(error, RunnerUnfit)
    assert words in str(error)
    assert f"process {ours} (" not in str(error)


def test_numbers_of_another_container_are_others_only_if_they_were_there_before(
    device: Device,
) -> None:
    memory = begun(device)
    device.times_ns = [BUSY, IDLE]
    device.pids = [ELSEWHERE]  # maybe the runner itself
    with pytest.raises(FaultError, match="left work running"), memory.watched():
        memory.stage(batch())
    error = outcome(device, IDLE)
    assert isinstance(error, RunnerUnfit)
    assert f"process {ELSEWHERE} of another container" in str(error)


def test_a_busy_device_is_found_before_a_runner_starts(device: Device) -> None:
    device.times_ns, device.pids = [BUSY], [STRANGER]
    memory = DeviceMemory(cast(Oracle, device), random.Random(7), CONFIG)
    with pytest.raises(RunnerUnfit, match=rf"something else.*process {STRANGER} \("):
        memory.begin(64, 64, batch())


def test_other_faults_need_no_second_look(device: Device) -> None:
    memory = begun(device)
    device.times_ns, device.pids = [BUSY], [STRANGER]
    with pytest.raises(FaultError, match="it crashed"), memory.watched():
        raise FaultError(Fault(Verdict.RUNTIME_ERROR, "it crashed"))
    assert device.looks == 1


@pytest.mark.parametrize(
    "words",
    ["OutOfMemoryError: CUDA out of memory.", "AcceleratorError: CUDA error: out of memory"],
)
def test_a_kernel_that_leaves_no_memory_is_at_its_limit(device: Device, words: str) -> None:
    memory = DeviceMemory(cast(Oracle, device), random.Random(7), CONFIG)
    device.fails = f"the task's code failed in 'check': {words}"
    with pytest.raises(FaultError, match="left no memory free on the device") as caught:
        memory.check(batch())
    assert caught.value.fault.verdict is Verdict.MEMORY_LIMIT
    device.pids, device.held = [STRANGER], {device.pid: 90, STRANGER: 5}
    with pytest.raises(FaultError):
        memory.check(batch())
    device.held = {device.pid: 60, STRANGER: 35}
    with pytest.raises(NoRoom, match=f"other processes hold much of it: process {STRANGER}"):
        memory.check(batch())
    device.fails = "the task's code failed in 'check': CUDA error: an illegal memory access"
    with pytest.raises(OracleError, match="illegal memory access"):
        memory.check(batch())


def test_a_kernel_is_not_at_its_limit_while_others_hold_much_memory(
    device: Device, ours: int
) -> None:
    memory = DeviceMemory(cast(Oracle, device), random.Random(7), CONFIG)
    device.fails = "the task's code failed in 'check': CUDA error: out of memory"
    own = Fault(Verdict.MEMORY_LIMIT, "out of memory in a call: OutOfMemoryError: CUDA out of")
    host = Fault(Verdict.MEMORY_LIMIT, "out of memory in a call: std::bad_alloc")
    for waiting, error in ((30, NoRoom), (15, FaultError), (0, FaultError)):
        device.held = {device.pid: 10, ours: 50, STRANGER: waiting}
        with pytest.raises(error):
            memory.check(batch())
        with pytest.raises(error), memory.watched():
            raise FaultError(own)
        with pytest.raises(FaultError), memory.watched():
            raise FaultError(host)


def test_who_is_interrupted_keeps_only_what_is_in_use(device: Device) -> None:
    memory = begun(device)
    device.used, device.needed = 90, 30
    with pytest.raises(Interrupted), memory.watched():
        raise Interrupted
    assert device.used == device.needed


def test_memory_for_bursts_is_made_once_they_are_measured(device: Device) -> None:
    memory = begun(device)
    small = memory.arenas
    memory.grow(64, 64)
    assert memory.arenas is small
    memory.grow(64, 256)
    memory.grow(64, 256)
    assert memory.arenas.outputs.size == 256
    assert device.shared == [(64, 64), (64, 256)]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(small.outputs.descriptor)
    memory.close()


def test_who_waits_keeps_only_what_is_in_use(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "memory_used", lambda index: device.used)
    device.used, device.needed = 90, 30
    memory = begun(device)
    assert memory.is_roomy()
    device.needed = 50
    assert not memory.is_roomy()
