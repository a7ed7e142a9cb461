"""Keeps processes from outliving those who answer for them (Linux: prctl and /proc)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SWEEP_S = 5.0


def die_with(parent: int) -> None:
    """Have the kernel kill this process as soon as `parent`, which forked it, dies."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that it can be swept."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def sweep(keep: Collection[int] = ()) -> int:
    """Kill and reap all children of this process but `keep`, and theirs; return how many."""
    swept = 0
    deadline = time.monotonic() + _SWEEP_S
    while time.monotonic() < deadline:
        strays = [pid for pid in children() if pid not in keep]
        if not strays:
            break
        for pid in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                swept += os.waitpid(pid, os.WNOHANG)[0] == pid
        time.sleep(0.01)
    return swept


def children() -> list[int]:
    """Process ids of this process's children, zombies included."""
    me = os.getpid()
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == me:
                found.append(int(path.parent.name))
    return found


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
