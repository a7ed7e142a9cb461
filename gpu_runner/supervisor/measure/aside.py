"""Leaves the device to others while a call that is not timed compiles."""

from __future__ import annotations

import time

from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.build.workshop import Workshop
from gpu_runner.supervisor.host import living
from gpu_runner.supervisor.host.channel import Channel
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.staging import Memory
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.freeze import Freezer, NotStopped
from gpu_runner.supervisor.runner.preemption import Interrupted, Manners

_LOOK_S = 0.1  # chosen: a wait for the device that nobody notices
_TURN_S = 2.0  # chosen: most kernels compile in it
_LONGEST_TURN_S = 16.0  # chosen: nobody waits longer for one that compiles for long
_LONG_S = 0.5  # chosen: far more than it takes to stop a process and to hand the device over


class Aside:
    """Stops a process in the middle of a call whenever somebody else wants the device.

    Whoever is more urgent gets it at once, and equals after a turn: if they took it at once, a call
    among many of them would never end. While the workshop compiles for the process, which waits for
    it, nobody needs the device: any equal gets it until that is done. If it cannot be stopped, it
    is ended instead. It's also ended for somebody more urgent if it holds much of the device's
    memory or its work isn't done. Equals wait instead, because whoever steps aside must leave room
    to measure in.
    After a turn that an equal ended, the next one is twice as long: a call must end even if new
    equals keep coming.
    """

    def __init__(
        self,
        manners: Manners,
        memory: Memory,
        config: SupervisorConfig,
        workshop: Workshop | None = None,
    ) -> None:
        """`memory` is what the call works in; `workshop` is what compiles for it."""
        self._manners, self._memory, self._config = manners, memory, config
        self._workshop = workshop

    def __call__(self, freezer: Freezer, channel: Channel) -> None:
        """See to one call, until it is answered or its time is over; others' is not its own.

        Raises `Interrupted` if the process has to be ended, `NotStopped` if it ran while others
        had the device, `FaultError` if what it has queued never ends, and `KilledFromOutside`.
        """
        since, turn_s = time.monotonic(), _TURN_S
        while channel.left_s > 0 and not channel.is_readable(_LOOK_S):
            is_over = time.monotonic() - since > turn_s
            unused = self._compiling_s() > _LONG_S
            if not self._manners.is_wanted(by_equals=is_over, unused=unused):
                continue
            left_s = channel.left_s
            if self._memory.is_roomy():
                left_s -= self._step_aside(freezer, left_s)
                turn_s = min(2 * turn_s, _LONGEST_TURN_S) if is_over else turn_s
            elif self._manners.is_wanted():
                raise Interrupted
            channel.allow(left_s)
            since = time.monotonic()

    def _step_aside(self, freezer: Freezer, most_s: float) -> float:
        """How long the workshop went on meanwhile, which counts as the call's own time."""
        compiled_s = 0.0

        def is_done() -> None:
            nonlocal compiled_s
            since = time.monotonic()
            while self._compiling_s() > 0 and compiled_s < most_s:
                time.sleep(_LOOK_S)
                compiled_s = time.monotonic() - since

        try:
            freezer.freeze()
        except NotStopped:
            raise Interrupted from None
        try:
            self._wait_for_its_work()
            living.note(self._config, freezer.pid)
            self._manners.step_aside(is_done)
        finally:
            living.forget(self._config, freezer.pid)
        freezer.check()
        freezer.thaw()
        return compiled_s

    def _compiling_s(self) -> float:
        return 0.0 if self._workshop is None else self._workshop.busy_s()

    def _wait_for_its_work(self) -> None:
        """Wait for what was queued: who stands still queues no more."""
        limit_s = self._config.call_timeout_s
        deadline = time.monotonic() + limit_s
        while not self._memory.is_quiet():
            if self._manners.is_wanted():
                raise Interrupted
            if time.monotonic() > deadline:
                reason = f"its work still ran {limit_s:g} s after its process was stopped"
                raise FaultError(Fault(Verdict.TIME_LIMIT, f"{reason}: an infinite loop?"))
