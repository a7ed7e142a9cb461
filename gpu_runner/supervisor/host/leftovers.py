"""Processes that evaluations could leave behind on a host."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.supervisor.host.jail import FIRST_JAIL_UID, JAIL_UIDS

OUR_PREFIX = "kbench-"
"""Names of our own temporary folders, anonymous files, threads and control groups begin so."""

_INIT = 1  # the first process
_EXITING = 0x4
"""The flag of a thread that has begun to exit. Source: PF_EXITING in Linux's sched.h."""
_FLAGS = 6  # its place in a thread's stat, after the name


@dataclass(frozen=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    uid: int
    state: str  # the kernel's letter; Z is a zombie
    name: str


def is_jail_uid(uid: int) -> bool:
    """Whether jailed processes, and nothing else, run as this user (where the daemon is root)."""
    return FIRST_JAIL_UID <= uid < FIRST_JAIL_UID + JAIL_UIDS


def process_table() -> dict[int, Process]:
    """All processes that this one can see, by id."""
    table = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            head, _, tail = (path / "stat").read_text(errors="replace").rpartition(")")
            state, parent = tail.split()[:2]
            pid, name = int(path.name), head.partition("(")[2]
            table[pid] = Process(pid, int(parent), path.stat().st_uid, state, name)
    return table


def orphans() -> list[str]:
    """Jailed processes whose supervisor is gone, each as a sentence."""
    table = process_table()
    return [sentence(process) for process in table.values() if _orphaned(process, table)]


def sentence(process: Process) -> str:
    """What and whose a process is."""
    what = "zombie" if process.state == "Z" else "process"
    return f"{what} {process.pid} ({process.name}) of user {process.uid}"


def dying(pid: int) -> bool:
    """Whether every thread of a process has begun to exit; a first one that has looks like all."""
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # it's gone
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            if not int(fields[_FLAGS]) & _EXITING:
                return False
    return True


def descends(process: Process, table: dict[int, Process]) -> bool:
    """Whether this process has started it, or started what did."""
    seen = {process.pid}
    parent = process.parent
    while parent in table and parent not in seen:
        if parent == os.getpid():
            return True
        seen.add(parent)
        parent = table[parent].parent
    return False


def _orphaned(process: Process, table: dict[int, Process]) -> bool:
    """Whether it is jailed, and nothing but its jail stands between it and the host's init."""
    if not _jailed(process) or (process.state == "Z" and dying(process.pid)):
        return False  # init reaps it when it likes
    top, seen = process, {process.pid}
    while top.parent in table and _jailed(table[top.parent]) and top.parent not in seen:
        top = table[top.parent]
        seen.add(top.pid)
    return top.parent <= _INIT


def _jailed(process: Process) -> bool:
    return is_jail_uid(process.uid) or process.name == "bwrap"
