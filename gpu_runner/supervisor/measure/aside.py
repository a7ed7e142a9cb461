"""Leaves the device to others while a call that is not timed compiles."""

from __future__ import annotations

import time

from gpu_runner.supervisor.host import living
from gpu_runner.supervisor.host.channel import Channel
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.staging import Memory
from gpu_runner.supervisor.runner.freeze import Freezer, NotStopped
from gpu_runner.supervisor.runner.preemption import Interrupted, Manners

_LOOK_S = 0.1  # chosen: a wait for the device that nobody notices
_TURN_S = 2.0  # chosen: most kernels compile in it, and nobody waits longer for one that doesn't


class Aside:
    """Stops a process in the middle of a call whenever somebody else wants the device.

    Whoever is more urgent gets it at once, and equals after a turn: if they took it at once, a call
    among many of them would never end. It goes on once they are done. If it has left work on the
    device, holds much of its memory or cannot be stopped, it is ended instead: nobody is to meet
    that.
    """

    def __init__(self, manners: Manners, memory: Memory, config: SupervisorConfig) -> None:
        """`memory` is what the call works in."""
        self._manners, self._memory, self._config = manners, memory, config

    def __call__(self, freezer: Freezer, channel: Channel) -> None:
        """See to one call, until it is answered or its time is over; others' is not its own.

        Raises `Interrupted` if the process has to be ended, and `KilledFromOutside`.
        """
        since = time.monotonic()
        while channel.left_s > 0 and not channel.is_readable(_LOOK_S):
            if not self._manners.is_wanted(by_equals=time.monotonic() - since > _TURN_S):
                continue
            left_s = channel.left_s
            try:
                freezer.freeze()
                if not self._memory.is_quiet():
                    raise Interrupted
                living.note(self._config, freezer.pid)
                self._manners.step_aside()
                freezer.check()
            except NotStopped:
                raise Interrupted from None
            finally:
                living.forget(self._config, freezer.pid)
            freezer.thaw()
            channel.allow(left_s)
            since = time.monotonic()
