"""Processes that the host has ended or starved: the fault of nobody whose code they ran."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import signal
import time
from pathlib import Path

from gpu_runner.supervisor.host.proc import state, status, threads

_FROM_OUTSIDE = frozenset(
    {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
)
"""Signals of people, service managers and the kernel's OOM killer; a program that crashes dies of
others."""
_SHELL = 128  # what a shell, and the jail, add to the signal that ended whom they waited for
_DEAD = frozenset("ZXx")  # states of proc(5)
DYING_S = 10.0
"""By then a process that was killed, or whose channel has closed, has ended, and its memory is
given back: 8 GiB in a second."""


class KilledFromOutside(Exception):
    """Something on this host has ended or stopped a process; another attempt may go well."""


def signal_of(status: int | None) -> int:
    """The signal that a process died of, or the one that it had waited for; 0 if it was none.

    Larger statuses are a program's own: nvcc ends with 255 where the assembler fails.
    """
    if status is None:
        return 0
    number = -status if status < 0 else status - _SHELL
    return number if number in signal.valid_signals() else 0


def is_from_outside(status: int | None) -> bool:
    """Whether a program that does not signal itself was ended by somebody else."""
    return signal_of(status) in _FROM_OUTSIDE


def name_of(number: int) -> str:
    """What people call a signal."""
    return signal.strsignal(number) or f"signal {number}"


def is_dead(pid: int) -> bool:
    """Whether no thread of a process is left, reaped or not."""
    if state(f"/proc/{pid}") not in _DEAD:  # the first thread lives
        return False
    return all(state(thread) in _DEAD for thread in threads(pid))


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped a process (SIGSTOP), and nobody has continued it."""
    return state(f"/proc/{pid}") == "T"


def status_of(pid: int) -> int:
    """Exit status of a process that is dead, as `subprocess` has it, without reaping it.

    -SIGKILL where it has been reaped: nobody else can know any more, and what has to reap one of
    ours waits until we are done with it, or dies with it in a jail.
    """
    fields = status(f"/proc/{pid}")
    return os.waitstatus_to_exitcode(int(fields[-1])) if fields else -signal.SIGKILL


def oom_kills() -> int:
    """How many processes this host's kernel has killed for want of memory; 0 if it does not say."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


class HostKills:
    """Notices when this host's kernel kills for want of memory, while a process lives.

    The count is the whole host's. So only a kill of the last moments is evidence for a process that
    has just died: one at any time would be there on each host that is often full.
    """

    def __init__(self) -> None:
        """Begin to count."""
        self._count, self._rose_at = oom_kills(), -math.inf

    def look(self) -> None:
        """See whether there were more; to be called at least every few seconds."""
        count = oom_kills()
        if count > self._count:
            self._count, self._rose_at = count, time.monotonic()

    @property
    def lately(self) -> bool:
        """Whether somebody was killed within the time that a process takes to die."""
        self.look()
        return time.monotonic() - self._rose_at < DYING_S


_LACKING = {
    errno.ENOSPC: "disk space",
    errno.EDQUOT: "disk space (a quota)",
    errno.ENOMEM: "memory",
    errno.EAGAIN: "processes",  # fork(2)
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
}


def shortage(error: BaseException) -> str:
    """A sentence for whoever can make room, where an exception says that there is none; or ""."""
    if isinstance(error, MemoryError):
        lacking = "memory"
    elif isinstance(error, OSError) and error.errno in _LACKING:
        lacking = _LACKING[error.errno]
    else:
        return ""
    return f"this runner's host has run out of {lacking}: its admin has to free some"
