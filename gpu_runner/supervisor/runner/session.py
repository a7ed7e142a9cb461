"""Drives one runner process: hands it calls, and turns whatever happens into plain outcomes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

from gpu_runner.data import wire
from gpu_runner.data.protocol import MAX_OVERHEAD_NS, WARM_ROUNDS
from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.supervisor.host.channel import ChannelClosed, ChannelTimeout
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.killed import DYING_S, KilledFromOutside
from gpu_runner.supervisor.host.proc import observer_delay_ns
from gpu_runner.supervisor.host.processors import has_own_cpu, keeping_off, measured_cpus
from gpu_runner.supervisor.runner.answer import Answer, Returned, answer_to
from gpu_runner.supervisor.runner.conditions import Arenas, Conditions
from gpu_runner.supervisor.runner.deaths import death, silence
from gpu_runner.supervisor.runner.faults import Fault, FaultError, RunnerUnfit, told
from gpu_runner.supervisor.runner.freeze import Freezer, NotStopped, Onlooker
from gpu_runner.supervisor.runner.gate import NOTHING, Gate, Handed
from gpu_runner.supervisor.runner.preemption import Interrupted
from gpu_runner.supervisor.runner.runner_process import NativeProcess, TorchProcess
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Wrapper

_Ran = tuple[float | wire.Done, int, float, int]  # an answer, and `Answer`'s wall, held, late ns
Stage = Callable[[], Handed]
"""Puts a call's inputs in place, or returns what to hand to the runner."""

_DRIFT = 1e-4  # chosen: 1.3e-6 between an H200's clock and its host's; quartz is good to 5e-5
_LOOK_S = 0.1  # chosen: how soon a death is noticed; answers wake it at once
_GETTING_READY = "while it was getting ready for a call"
WROTE_LATER = "wrote to its outputs after it said that the call was over"
SHARED = "returned file-backed or shared memory: return a new tensor for each output"


class Session:
    """A running runner process. Use as a context manager.

    Its whole tree stands still but from the release of a call to the acknowledgement: whatever is
    written into the shared memory in between, no thread of a submission sees it come or go.
    """

    onlooker: Onlooker | None = None  # sees to what runs in a call that is not timed

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
        on_cpu = config.kind is DeviceKind.CPU
        timed = ncu is None and not self._conditions.team
        self._page = arenas.gate  # by which the torch runner is let begin
        self._gate = self._page if timed and on_cpu and has_own_cpu() else None
        self._process = self._started(arenas)
        self._channel, self._child = self._process.channel, self._process.child
        self.pid = 0  # of the runner itself, once it is ready
        self._is_idle = True  # nothing of a submission runs: it is not loaded yet, or stands still
        self._allowed_s, self._measured = 0.0, measured_cpus()  # before this thread leaves them
        self._has_own_cpu, self._elsewhere = has_own_cpu(), ExitStack()
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
        sizes = {"inputs": arenas.inputs.size, "outputs": arenas.outputs.size}
        process.give(target, arenas.of_torch(config.kind), sizes)
        return process

    def __enter__(self) -> Session:
        """Return itself; on a CPU the calling thread leaves the measured cores alone meanwhile."""
        on_cpu = self._config.kind is DeviceKind.CPU
        self._elsewhere.enter_context(keeping_off(self._measured if on_cpu else []))
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process and everything that it started."""
        try:
            self._process.hang_up()
        finally:
            self._child.kill()
            self._elsewhere.close()

    @property
    def others_ns(self) -> list[int]:
        """How long each thread but the busiest has run before the last stop."""
        return self._freezer.others_ns() if self._freezer else []

    @property
    def target(self) -> Target:
        """What the process runs."""
        return self._target

    @property
    def output(self) -> str:
        """What the process printed; shown to the author, never judged."""
        return self._child.output

    def ready(self) -> None:
        """Wait until the runner has started and measured its clock, with no submission loaded.

        Raises `RunnerUnfit`, or `FaultError` under a tool, as the tool may be what failed.
        """
        try:
            self._start()
        except FaultError as error:
            if self._ncu is not None:
                raise
            raise RunnerUnfit(f"no runner can start on this host: {error.fault.reason}") from None

    def _start(self) -> None:
        self._allow(self._config.start_timeout_s)
        self._process.begin()
        self._await()
        overhead_ns = self._ready("while it was starting")
        if self._ncu is None and not 0 <= overhead_ns <= MAX_OVERHEAD_NS:
            raise RunnerUnfit(f"an empty measurement takes {overhead_ns:.0f} ns on this host")
        tree = [self._child.pid] if self._freezer is None else self._freezer.tree()
        if not tree:
            if not self._child.running:
                raise self._death("while it was starting")
            raise RunnerUnfit("this host doesn't list processes' children, so none can be stopped")
        self.pid = tree[-1]  # the jail's own processes come before it
        self._freeze()
        if not self._conditions.team:
            self._child.measure(self._measured)

    def setup(self, description: dict[str, object]) -> None:
        """Announce a workload to the torch runner, which may compile a baseline now."""
        request = wire.frame(wire.Command.SETUP, json.dumps(description).encode())
        self.asked(request, "while a workload was being set up")

    def asked(self, request: bytes, when: str) -> float:
        """Have something done that is no call; the number with which the runner answers."""
        self._allow(self._config.start_timeout_s)
        self._send(request)
        self._thaw()
        self._await()
        number = self._ready(when)
        self._freeze()
        return number

    def call(self, call: wire.Call, stage: Stage = lambda: NOTHING) -> Answer:
        """Make one call. Raises `FaultError` if the runner fails, dies or does not answer.

        stage: puts the call's inputs in place while the runner stands still, which has done by then
        whatever a call needs besides itself.
        Raises `KilledFromOutside` if the host killed it, and `InDoubt` if nobody knows who did.
        """
        self._allow(self._config.call_timeout_s)
        request = wire.frame(wire.Command.CALL, wire.pack_call(call))
        answer = self._ask(request, call.call_id, stage, call)
        if (claimed_ns := answer.done.time_ns) > (1 + _DRIFT) * (wall_ns := answer.wall_ns):
            reason = f"claims {claimed_ns:.0f} ns for a call that took {wall_ns} ns of wall time"
            raise FaultError(Fault(Verdict.VIOLATION, reason))
        return self._with_returned(answer, call)

    def again(self, request: bytes, number: int, call: wire.Call, stage: Stage) -> Answer:
        """Make a call that nobody times, as a REPEAT or GRAPH frame of this number asks."""
        self._allow(self._config.call_timeout_s)
        return self._with_returned(self._ask(request, number, stage), call)

    def _with_returned(self, answer: Answer, call: wire.Call) -> Answer:
        if self._target.python and self._config.kind is DeviceKind.CPU:
            return replace(answer, returned=Returned(self.pid, call, answer.done))
        return answer

    def burst(
        self, burst_id: int, calls: Sequence[wire.Call], stage: Stage = lambda: NOTHING
    ) -> Answer:
        """Make several calls that are answered together; see `call`."""
        self._allow(self._config.call_timeout_s * len(calls))
        request = wire.frame(wire.Command.BURST, wire.pack_burst(burst_id, calls))
        return self._ask(request, burst_id, stage)

    def _to_the_gate(self, gate: Gate, number: int) -> None:
        """Let the torch runner get ready for a call, and stop it where it waits for the inputs."""
        self._thaw()
        if not gate.is_reached(number, self._channel.descriptor, self._allowed_s):
            self._receive(_GETTING_READY)
            reason = "reported that a call was over before it began"
            raise FaultError(Fault(Verdict.VIOLATION, reason))
        self._freeze()

    def end(self) -> None:
        """Look at what the runner has loaded, ask it to exit, and wait for it for a moment."""
        self._process.look()
        self._allow(5)
        self._send(wire.frame(wire.Command.END))
        self._thaw()
        self._ended(5)

    def _ended(self, patience_s: float = DYING_S) -> int | None:
        """Wait for the process to end; under a tool, which writes its report then, for longer."""
        if self._freezer is not None:
            self._freezer.thaw()  # the jail, which ends after what has died in it
        return self._child.wait(patience_s if self._ncu is None else self._config.profile_timeout_s)

    def _ask(
        self, request: bytes, number: int, stage: Stage, passing: wire.Call | None = None
    ) -> Answer:
        """Release a request, wait for its acknowledgement, and stop the runner again.

        passing: the call that is timed at the gate, if there is one.
        """
        timed = passing is not None and self.onlooker is None
        gate, page = self._gate if timed else None, self._page if self._target.python else None
        waits = self._freezer is not None or page is not None
        if waits:
            self._send(request)  # it stays in the socket until the runner may run
        if page is not None:
            self._to_the_gate(page, number)
        handed = self._staged(stage)
        if gate is not None and passing is not None:
            gate.prepare(passing, self.pid if page is not None else 0)
        begin = partial(self._open, gate, page, number, handed, b"" if waits else request)
        reply, wall_ns, held_ns, late_ns = self._ran(begin, "in a call")
        done = answer_to(number, reply)
        if self._config.kind is DeviceKind.CPU:  # there is no queue: nothing excuses a long call
            done = replace(done, host_ns=0)
        threads = 0 if self._freezer is None else self._freezer.threads
        gate_ns = None if gate is None else self._passed(gate, done)
        if self._target.python and self._config.kind is DeviceKind.CUDA:
            done, copied_ns = self._copied(done)
            held_ns += copied_ns
        kept_ns = 0 if self._freezer is None or gate is None else self._freezer.delayed_ns()
        return Answer(done, wall_ns, held_ns, gate_ns, late_ns, kept_ns, threads)

    def _ran(self, begin: Callable[[], None], when: str) -> _Ran:
        """Let the runner run until it answers."""
        with self._conditions.completion() as completed_ns:
            delay_ns, began_ns = observer_delay_ns(), time.monotonic_ns()
            self._run()
            begin()
            reply = self._receive(when)
            ended_ns = time.monotonic_ns() if completed_ns is None else completed_ns(self._halt)
            wall_ns, delayed_ns = ended_ns - began_ns, observer_delay_ns() - delay_ns
        self._freeze()
        late_ns = observer_delay_ns() - delay_ns if self._has_own_cpu else 0
        on_cpu, held_ns = self._config.kind is DeviceKind.CPU, float(wall_ns)
        if self._freezer is not None:
            held_ns = self._freezer.held_ns(wall_ns - delayed_ns, on_cpu=on_cpu)
        return reply, wall_ns, held_ns, late_ns

    def _copied(self, done: wire.Done) -> tuple[wire.Done, float]:
        """Have outputs copied once the inputs are gone; with its time, or work could hide there."""
        self._conditions.withdraw()
        self._allow(self._config.call_timeout_s)
        self._send(wire.frame(wire.Command.COPY, wire.COPY_BODY.pack(done.call_id)))
        if self._freezer is not None:
            self._still(self._freezer.check)
        reply, _, held_ns, _ = self._ran(lambda: None, "while its outputs were being copied")
        return replace(done, outputs=answer_to(done.call_id, reply).outputs), held_ns

    def _staged(self, stage: Stage) -> Handed:
        handed = stage()
        self._channel.allow(self._allowed_s)  # drawing inputs does not use up the call's time
        if self._freezer is not None:
            self._still(self._freezer.check)
        return handed

    def _open(
        self, gate: Gate | None, page: Gate | None, number: int, handed: Handed, unsent: bytes
    ) -> None:
        """Let a call begin, timed at the gate or not; unsent: its request, if nothing holds it."""
        if unsent:
            self._send(unsent)
        opening: Callable[..., object] | None = None if page is None else partial(page.open, number)
        opening = opening if gate is None else gate.watch
        if opening is not None:
            rounds = 0 if page is None or self._gate is None else WARM_ROUNDS
            told = self._channel.descriptor, self._allowed_s, rounds, handed
            opening(*told, self._process.handles)
        if self._ncu is not None:
            self._await()
        if self.onlooker is not None and self._freezer is not None:
            self._still(partial(self.onlooker, self._freezer, self._channel))

    def _passed(self, gate: Gate, done: wire.Done) -> float:
        """Time of the call that has just passed the gate, in ns."""
        if not gate.is_passed:
            reason = "answered a call before saying that it was over"
            raise FaultError(Fault(Verdict.VIOLATION, reason))
        addresses = [record.address for record in done.outputs]
        if gate.told(len(addresses)) != addresses or not gate.is_final():
            raise FaultError(Fault(Verdict.VIOLATION, WROTE_LATER))
        if gate.is_shared:
            raise FaultError(Fault(Verdict.VIOLATION, SHARED))
        return gate.time_ns

    def _halt(self) -> None:
        if self._freezer is not None:
            self._freezer.halt()

    def _freeze(self) -> None:
        if self._freezer is not None:
            self._still(self._freezer.freeze)
            self._is_idle = self._freezer.holds

    def _thaw(self) -> None:
        if self._freezer is not None:
            self._still(self._freezer.check)
        self._run()

    def _run(self) -> None:
        self._is_idle = False
        if self._freezer is not None:
            self._freezer.thaw()

    def _still(self, step: Callable[[], None]) -> None:
        try:
            step()
        except NotStopped as error:
            raise FaultError(Fault(Verdict.VIOLATION, str(error))) from None
        except KilledFromOutside:
            if self._child.memory_exceeded:  # then it was us
                raise self._death("between calls") from None
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
            raise FaultError(Fault(Verdict.VIOLATION, "answered something that it wasn't asked"))
        return reply

    def _send(self, data: bytes) -> None:
        try:
            self._channel.send(data)
        except (ChannelClosed, ChannelTimeout) as error:
            if self._freezer is not None:
                self._still(self._freezer.check)  # it may have been killed where it stood
            ended = isinstance(error, ChannelClosed)
            raise self._last_words(ended=ended) from None

    def _last_words(self, *, ended: bool) -> FaultError:
        """Why nothing can be sent: what the process said before it ended, else how it ended."""
        when = "between calls"
        with suppress(ChannelClosed, ChannelTimeout, wire.WireError):
            reply = wire.unpack_reply(*wire.read_frame(self._channel.read)) if ended else None
            if isinstance(reply, wire.Failed):
                return FaultError(told(reply, when, is_module=self._target.is_module))
        return self._death(when)

    def _receive(self, when: str) -> float | wire.Done:
        try:
            reply = wire.unpack_reply(*wire.read_frame(self._channel.read))
        except ChannelTimeout:
            if self._child.memory_exceeded:  # killed, and its memory takes long to be freed
                raise self._death(when) from None
            stopped = self._child.stopped
            raise silence(when, self._allowed_s, stopped=stopped) from None
        except ChannelClosed:
            raise self._death(when) from None
        except wire.WireError as error:
            reason = f"sent bytes that the protocol does not allow: {error}"
            raise FaultError(Fault(Verdict.VIOLATION, reason)) from None
        if isinstance(reply, wire.Failed):
            if self._ncu is not None:
                self._ended()
            raise FaultError(told(reply, when, is_module=self._target.is_module))
        return reply

    def _death(self, when: str) -> FaultError:
        """Why the process is gone; raises `KilledFromOutside` where its code is not the cause."""
        return death(when, self._child, self._ended(), is_idle=self._is_idle)
