"""Keeps processes from outliving those who answer for them (Linux: prctl and /proc)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_SWEEP_S = 5.0  # chosen: what outlives SIGKILL for longer hangs in the kernel
STANDSTILL_S = 5.0  # chosen: nobody stops a measurement on purpose; all others wait for it
_DYING_S = 0.3  # a process that was killed a moment ago takes a moment to end


def die_with(parent: int) -> None:
    """Have the kernel kill this process as soon as `parent`, which forked it, dies."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that it can be swept."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def sweep(keep: Collection[int] = ()) -> int:
    """Reap all children of this process but `keep`; kill and count those that do not end now."""
    killed: set[int] = set()
    deadline = time.monotonic() + _SWEEP_S
    patient_until = time.monotonic() + _DYING_S
    while (states := children()) and time.monotonic() < deadline:
        strays = {pid: state for pid, state in states.items() if pid not in keep}
        if not strays:
            break
        for pid, state in strays.items():
            if state not in "ZX" and time.monotonic() > patient_until:
                killed.add(pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)
    return len(killed)


class Standstill:
    """Notices a process that a signal has stopped, and nobody lets go on."""

    def __init__(self) -> None:
        self._since: float | None = None

    def is_over(self, pid: int) -> bool:
        """Whether the process has stood still for longer than anybody should wait."""
        if not is_stopped(pid):
            self._since = None
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since > STANDSTILL_S


def is_stopped(pid: int) -> bool:
    """Whether a signal such as SIGSTOP has stopped the process."""
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return stat.rpartition(")")[2].split()[0] == "T"
    return False


def children() -> dict[int, str]:
    """Process ids of this process's children, with the letters of their states (Z: zombie)."""
    me = os.getpid()
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if int(parent) == me:
                found[int(path.parent.name)] = state
    return found


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
