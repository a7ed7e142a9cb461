"""Drives one runner process: hands it calls, and turns whatever happens into plain outcomes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from gpu_runner.data import wire
from gpu_runner.data.protocol import MAX_OVERHEAD_NS
from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.supervisor.host.arena import Arena, DeviceArena
from gpu_runner.supervisor.host.channel import ChannelClosed, ChannelTimeout
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.killed import KilledFromOutside, signal_of
from gpu_runner.supervisor.host.processors import has_own_cpu, keeping_off, measured_cpus
from gpu_runner.supervisor.oracle.client import Completion
from gpu_runner.supervisor.runner.faults import Fault, FaultError, RunnerUnfit
from gpu_runner.supervisor.runner.freeze import Freezer, NotStopped, observer_delay_ns
from gpu_runner.supervisor.runner.gate import Gate
from gpu_runner.supervisor.runner.preemption import Interrupted
from gpu_runner.supervisor.runner.runner_process import NativeProcess, TorchProcess, TorchProcesses
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Wrapper

Completing = Callable[[], AbstractContextManager[Completion | None]]


_LOOK_S = 0.1  # chosen: how soon a death is noticed; answers wake it at once

WROTE_LATER = "wrote to its outputs after it had said that the call was over"


@dataclass(frozen=True)
class Arenas:
    """The shared memory that a runner inherits.

    gate: what timed calls of the c ABI on a CPU pass.
    """

    inputs: Arena | DeviceArena
    outputs: Arena | DeviceArena
    gate: Gate | None = None


@dataclass(frozen=True)
class Answer:
    """An acknowledgement, and what the supervisor itself knows of the time that it took."""

    done: wire.Done
    wall_ns: int
    """By the supervisor's clock, on a device until that was seen without work."""
    held_ns: float
    """How much of `wall_ns` the call needed at least.

    On a CPU, the processor time that the scheduler accounted to the runner, which no other load of
    the host disturbs, less what waiting threads cost. On a device, the wall time without what the
    host's scheduler gave to others.
    """
    gate_ns: float | None = None
    """From when the call was let begin until it said that it was over, where it passes a gate."""
    late_ns: int = 0
    """How long others kept this thread from a processor meanwhile.

    A runner may spin for so long: before its call is let begin, or until it is stopped. 0 where a
    runner itself could keep this thread waiting.
    """
    threads: int = 0
    """Of the process, after the call."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What surrounds a measured process."""

    completion: Completing = nullcontext
    """See `staging.Memory`. A call lasts until a device is idle, whatever was said before."""
    idle_ns: float = 0.0
    """See `Freezer`."""
    is_wanted: Callable[[], bool] = lambda: False
    """Whether somebody more urgent waits for the device; long waits raise `Interrupted` then."""
    torch: TorchProcesses | None = None
    """Where torch runners that were started ahead are."""
    team: int = 0
    """Threads of an OpenMP team at least, on all processors of the host (`processors.team_size`).

    Of a process that is not timed; 0 leaves both to the measured processors.
    """


class Session:
    """A running runner process. Use as a context manager.

    Its whole tree stands still but from the release of a call to the acknowledgement: whatever is
    written into the shared memory in between, no thread of a submission sees it come or go.
    """

    def __init__(
        self,
        target: Target,
        arenas: Arenas,
        config: SupervisorConfig,
        ncu: Wrapper | None = None,
        conditions: Conditions | None = None,
    ) -> None:
        """Start the process, under a profiler if there is one; `ready` waits for it."""
        self._target, self._config, self._ncu = target, config, ncu
        self._conditions = conditions or Conditions()
        timed = ncu is None and not self._conditions.team
        self._gate = _gate_of(target, arenas) if timed else None
        self._process = self._started(arenas)
        self._channel, self._child = self._process.channel, self._process.child
        self._allowed_s = 0.0
        self._measured = measured_cpus()  # of those that this thread has before it leaves them
        self._has_own_cpu = has_own_cpu()
        self._elsewhere = ExitStack()
        self._freezer: Freezer | None = None
        if ncu is None:  # a profiler runs beside the program, and needs no clock of ours
            everywhere = len(os.sched_getaffinity(0))
            bare = config.allow_unjailed
            count = everywhere if self._conditions.team else len(self._measured)
            self._freezer = Freezer(
                self._child.pid, bare=bare, processors=count, idle_ns=self._conditions.idle_ns
            )

    def _started(self, arenas: Arenas) -> NativeProcess | TorchProcess:
        target, config, ncu, team = self._target, self._config, self._ncu, self._conditions.team
        if not target.python:
            page = None if self._gate is None else self._gate.page
            return NativeProcess(target, [arenas.inputs, arenas.outputs, page], config, ncu, team)
        ahead = self._conditions.torch
        process = TorchProcess(config, ncu, team) if ncu or ahead is None else ahead.take(team)
        process.give(target, [arenas.inputs, arenas.outputs])
        return process

    def __enter__(self) -> Session:
        """Return itself; on a CPU the calling thread leaves the measured cores alone meanwhile."""
        on_cpu = self._config.kind is DeviceKind.CPU
        self._elsewhere.enter_context(keeping_off(self._measured if on_cpu else []))
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process and everything that it started."""
        try:
            self._channel.close()
        finally:
            self._child.kill()
            self._elsewhere.close()

    @property
    def others_ns(self) -> list[int]:
        """How long each thread but the busiest has run in the last call."""
        return [] if self._freezer is None else self._freezer.others_ns()

    @property
    def target(self) -> Target:
        """What the process runs."""
        return self._target

    @property
    def output(self) -> str:
        """What the process printed; shown to the author, never judged."""
        return self._child.output

    def ready(self) -> None:
        """Wait until the runner has started and measured its clock, with no submission loaded."""
        self._allow(self._config.start_timeout_s)
        self._process.begin()
        self._await()
        overhead_ns = self._ready("while it was started")
        if self._ncu is None and not 0 <= overhead_ns <= MAX_OVERHEAD_NS:
            raise RunnerUnfit(f"an empty measurement takes {overhead_ns:.0f} ns on this host")
        if self._freezer is not None and not self._freezer.tree():
            raise RunnerUnfit("this host names no children of processes, so none can be stopped")
        self._freeze()
        if not self._conditions.team:
            self._child.measure(self._measured)

    def setup(self, description: dict[str, Any]) -> None:
        """Announce a workload to the torch runner, which may compile a baseline now."""
        self._allow(self._config.start_timeout_s)
        self._send(wire.frame(wire.Command.SETUP, json.dumps(description).encode()))
        self._thaw()
        self._await()
        self._ready("while a workload was set up")
        self._freeze()

    def call(self, call: wire.Call) -> Answer:
        """Make one call. Raises `FaultError` if the runner fails, dies or does not answer.

        Raises `KilledFromOutside` if it dies of what this host has done.
        """
        self._allow(self._config.call_timeout_s)
        request = wire.frame(wire.Command.CALL, wire.pack_call(call))
        answer = self._ask(request, call.call_id, call)
        claimed_ns, wall_ns = answer.done.time_ns, answer.wall_ns
        if claimed_ns > wall_ns:
            reason = f"claims {claimed_ns:.0f} ns for a call that took {wall_ns} ns in all"
            raise FaultError(Fault(Verdict.VIOLATION, reason))
        return answer

    def burst(self, burst_id: int, calls: Sequence[wire.Call]) -> Answer:
        """Make several calls that are answered together; see `call`."""
        self._allow(self._config.call_timeout_s * len(calls))
        return self._ask(wire.frame(wire.Command.BURST, wire.pack_burst(burst_id, calls)), burst_id)

    def end(self) -> None:
        """Ask the runner to exit, and wait for it for a moment."""
        self._allow(5)
        self._send(wire.frame(wire.Command.END))
        self._thaw()
        self._ended(5)

    def _ended(self, patience_s: float = 2) -> int | None:
        """Wait for the process to end; under a tool, which writes its report then, for longer."""
        return self._child.wait(patience_s if self._ncu is None else self._config.profile_timeout_s)

    def _ask(self, request: bytes, number: int, passing: wire.Call | None = None) -> Answer:
        """Release a request, wait for its acknowledgement, and stop the runner again.

        passing: the call that passes the gate, if there is one.
        """
        gate = self._gate if passing is not None else None
        self._send(request)  # it waits in the socket until the runner may run
        if self._freezer is not None:
            self._still(self._freezer.check)
        if gate is not None and passing is not None:
            gate.prepare(passing)
        with self._conditions.completion() as completed_ns:
            delay_ns = observer_delay_ns()
            began_ns = time.monotonic_ns()
            if self._freezer is not None:
                self._freezer.thaw()
            if gate is not None:
                gate.watch(self._channel.descriptor, self._allowed_s)
            if self._ncu is not None:
                self._await()
            reply = self._receive("in a call")
            ended_ns = time.monotonic_ns() if completed_ns is None else completed_ns(self._halt)
            wall_ns = ended_ns - began_ns
            delayed_ns = observer_delay_ns() - delay_ns
        self._freeze()
        late_ns = observer_delay_ns() - delay_ns if self._has_own_cpu else 0
        if not isinstance(reply, wire.Done) or reply.call_id != number:
            raise FaultError(Fault(Verdict.VIOLATION, "answered something that was not asked"))
        threads = 0 if self._freezer is None else self._freezer.threads
        held_ns = self._held_ns(wall_ns, delayed_ns)
        gate_ns = None if gate is None else self._passed(gate)
        return Answer(reply, wall_ns, held_ns, gate_ns, late_ns, threads)

    def _passed(self, gate: Gate) -> float:
        """Time of the call that has just passed the gate, in ns."""
        if not gate.is_passed:
            reason = "answered a call that had not said that it was over"
            raise FaultError(Fault(Verdict.VIOLATION, reason))
        if not gate.is_final():
            raise FaultError(Fault(Verdict.VIOLATION, WROTE_LATER))
        return gate.time_ns

    def _held_ns(self, wall_ns: int, delayed_ns: int) -> float:
        if self._freezer is None:
            return float(wall_ns)
        ran_ns = self._freezer.ran_ns()
        if self._config.kind is DeviceKind.CPU:
            return ran_ns
        return max(ran_ns, wall_ns - delayed_ns - self._freezer.delayed_ns())

    def _halt(self) -> None:
        if self._freezer is not None:
            self._freezer.halt()

    def _freeze(self) -> None:
        if self._freezer is not None:
            self._still(self._freezer.freeze)

    def _thaw(self) -> None:
        if self._freezer is not None:
            self._still(self._freezer.check)
            self._freezer.thaw()

    def _still(self, step: Callable[[], None]) -> None:
        try:
            step()
        except NotStopped as error:
            raise FaultError(Fault(Verdict.VIOLATION, str(error))) from None
        except KilledFromOutside:
            if self._child.memory_exceeded:  # then it was us
                raise FaultError(self._death("between calls")) from None
            raise

    def _await(self) -> None:
        """Wait until there is something to read, or the deadline; it may take seconds."""
        deadline = time.monotonic() + self._allowed_s
        while not self._channel.is_readable(_LOOK_S) and time.monotonic() < deadline:
            if self._conditions.is_wanted():
                raise Interrupted

    def _allow(self, seconds: float) -> None:
        self._allowed_s = seconds
        self._channel.allow(seconds)

    def _ready(self, when: str) -> float:
        reply = self._receive(when)
        if not isinstance(reply, float):
            raise FaultError(Fault(Verdict.VIOLATION, "answered something that was not asked"))
        return reply

    def _send(self, data: bytes) -> None:
        try:
            self._channel.send(data)
        except (ChannelClosed, ChannelTimeout) as error:
            if self._freezer is not None:
                self._still(self._freezer.check)  # it may have been killed where it stood
            ended = isinstance(error, ChannelClosed)
            raise FaultError(self._last_words(ended=ended)) from None

    def _last_words(self, *, ended: bool) -> Fault:
        """Why nothing can be sent: what the process said before it ended, else how it ended."""
        when = "between calls"
        with suppress(ChannelClosed, ChannelTimeout, wire.WireError):
            reply = wire.unpack_reply(*wire.read_frame(self._channel.read)) if ended else None
            if isinstance(reply, wire.Failed):
                return self._failure(reply, when)
        return self._death(when)

    def _receive(self, when: str) -> float | wire.Done:
        try:
            reply = wire.unpack_reply(*wire.read_frame(self._channel.read))
        except ChannelTimeout:
            if self._child.memory_exceeded:  # killed, and its memory takes long to be freed
                raise FaultError(self._death(when)) from None
            limit = f"{self._allowed_s:g} s"
            reason = f"no answer {when} within {limit}: an endless loop or a deadlock?"
            raise FaultError(Fault(Verdict.TIME_LIMIT, reason)) from None
        except ChannelClosed:
            raise FaultError(self._death(when)) from None
        except wire.WireError as error:
            reason = f"sent bytes that the protocol does not allow: {error}"
            raise FaultError(Fault(Verdict.VIOLATION, reason)) from None
        if isinstance(reply, wire.Failed):
            if self._ncu is not None:
                self._ended()
            raise FaultError(self._failure(reply, when))
        return reply

    def _death(self, when: str) -> Fault:
        """Why the process is gone; raises `KilledFromOutside` where its code is not the cause."""
        status = self._ended()
        if self._child.memory_exceeded:
            reason = f"used more memory than it may {when} (limit {self._child.memory_limit})"
            return Fault(Verdict.MEMORY_LIMIT, reason)
        if self._child.killed_from_outside(status):
            raise KilledFromOutside(f"the process was killed from outside {when}")
        how = "ended" if status in (0, None) else f"died with status {status}"
        if signal_of(status) == signal.SIGKILL:
            how = "was killed, by itself or by somebody on this host,"
        return Fault(Verdict.RUNTIME_ERROR, f"the process {how} {when} without an answer")

    def _failure(self, failed: wire.Failed, when: str) -> Fault:
        text = failed.text.strip() or failed.code.name.lower()
        match failed.code:
            case wire.ErrorCode.MEMORY:
                return Fault(Verdict.MEMORY_LIMIT, f"out of memory {when}: {text}")
            case wire.ErrorCode.SYMBOL:
                what = "module" if self._target.is_module else "library"
                return Fault(Verdict.COMPILE_ERROR, f"the {what} cannot be used: {text}")
            case wire.ErrorCode.INPUT_WRITE:
                return Fault(Verdict.VIOLATION, f"{text}: inputs must not be changed")
            case wire.ErrorCode.SHAPE:
                return Fault(Verdict.WRONG_SHAPE, text)
            case wire.ErrorCode.SIGNAL:
                hint = " (a null pointer: did an allocation fail?)" if "(nil)" in text else ""
                return Fault(Verdict.RUNTIME_ERROR, f"{text}{hint} {when}")
        return Fault(Verdict.RUNTIME_ERROR, f"{text} ({when})")


@contextmanager
def keeping_output(session: Session) -> Iterator[None]:
    """Give a fault what the process had printed, before the process is gone."""
    try:
        yield
    except FaultError as error:
        error.output = session.output
        raise


def _gate_of(target: Target, arenas: Arenas) -> Gate | None:
    """The gate of calls that are timed; who watches it spins, and needs a processor of its own."""
    return arenas.gate if has_own_cpu() and not target.python else None
