"""Processes that a signal from outside has ended: the fault of nobody whose code they ran."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

_FROM_OUTSIDE = frozenset(
    {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
)
"""Signals of people, service managers and the kernel's OOM killer; a program that crashes dies of
others."""
_SHELL = 128  # what a shell, and the jail, add to the signal that ended whom they waited for
_SIGNAL_BITS = 0x7F  # of a status as waitpid(2) has it
_DEAD = frozenset("ZXx")  # states of proc(5)


class KilledFromOutside(Exception):
    """Somebody or something on this host has ended a process; another attempt may go well."""


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
    if _state(f"/proc/{pid}") not in _DEAD:  # the first thread lives
        return False
    with contextlib.suppress(OSError):
        return all(
            _state(f"/proc/{pid}/task/{t}") in _DEAD for t in os.listdir(f"/proc/{pid}/task")
        )
    return True


def was_killed(pid: int) -> bool:
    """Whether a process that is dead was ended by SIGKILL; true of one that has been reaped.

    Only what waits for it can reap it, and that dies with it in a jail.
    """
    fields = _fields(f"/proc/{pid}")
    return not fields or int(fields[-1]) & _SIGNAL_BITS == signal.SIGKILL


def oom_kills() -> int:
    """How many processes this host's kernel has killed for want of memory; 0 if it does not say."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


def _state(folder: str) -> str:
    fields = _fields(folder)
    return fields[0] if fields else "X"


def _fields(folder: str) -> list[str]:
    """What proc(5) says of a process or thread, from its state on; nothing where there is none."""
    try:
        # a process names itself as it likes
        return Path(folder, "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
