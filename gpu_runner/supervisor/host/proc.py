"""What proc(5) says of processes and their threads; a thread is named by its folder there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

_STILL = frozenset("TtZXx")  # states of proc(5): stopped, traced, dead
_LOOKS = 20  # chosen: the second look mostly finds no change
_PIECE = 4096  # chosen: a page, as the kernel hands it out


@dataclass(frozen=True)
class Schedule:
    """How long a thread has run, and how long it was kept from running by others, in ns.

    slices: how often it has been given a processor.
    """

    ran_ns: int
    delayed_ns: int
    slices: int = 0


def read(path: str) -> str:
    """A file of /proc. Raises `OSError` where there is none.

    A process with PyTorch has a hundred threads, at which a call looks dozens of times. `pathlib`
    takes five times as long for it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = piece = os.read(descriptor, _PIECE)
        while len(piece) > _PIECE // 2:  # a list of children; all but its last piece are full
            text += (piece := os.read(descriptor, _PIECE))
        return text.decode(errors="replace")  # a process names itself as it likes
    finally:
        os.close(descriptor)


def status(folder: str) -> list[str]:
    """What a process or thread says of itself, from its state on; nothing where there is none."""
    try:
        return read(f"{folder}/stat").rpartition(")")[2].split()
    except OSError:
        return []


def state(folder: str) -> str:
    """The letter of proc(5); X where there is no such process or thread."""
    return (status(folder) or "X")[0]


def threads(pid: int) -> list[str]:
    """All that a process has now; none once it is gone."""
    try:
        return [f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def id_of(thread: str) -> int:
    """The number by which system calls know it."""
    return int(thread.rpartition("/")[2])


def descendants(pid: int) -> list[int]:
    """Ids of the processes below a process, as they are now."""
    found: list[int] = []
    pending = [pid]
    while pending:
        children = _children(pending.pop())
        found += children
        pending += children
    return found


def is_still(pid: int) -> bool:
    """Whether no thread of a process can run; true for one that has ended."""
    return all(state(thread) in _STILL for thread in threads(pid))


def schedules(tree: Sequence[int]) -> dict[str, Schedule]:
    """Of every thread of these processes."""
    found = {}
    for pid in tree:
        for thread in threads(pid):
            with contextlib.suppress(OSError, ValueError, IndexError):
                found[thread] = _schedule(thread)
    return found


def settled(tree: Sequence[int]) -> dict[str, Schedule]:
    """Schedules once they no longer change: a thread is accounted when it leaves its processor."""
    for pid in tree:
        for thread in threads(pid):
            _leave_processor(thread)
    found = schedules(tree)
    for _ in range(_LOOKS):
        again = schedules(tree)
        if again == found:
            break
        found = again
    return found


def observer_delay_ns() -> int:
    """How long the calling thread has waited for a processor so far; 0 where nobody counts."""
    try:
        return _schedule("/proc/thread-self").delayed_ns
    except (OSError, ValueError, IndexError):
        return 0


def _schedule(thread: str) -> Schedule:
    ran, delayed, slices = read(f"{thread}/schedstat").split()[:3]
    return Schedule(int(ran), int(delayed), int(slices))


def _leave_processor(thread: str) -> None:
    """Wait until a stopped thread is off its processor, as far as the kernel lets us ask.

    It is called stopped before it has left, and a host may take the virtual processor away in
    between. To read what system call a thread is in, the kernel waits for that by itself.
    """
    with contextlib.suppress(OSError):
        read(f"{thread}/syscall")


def _children(pid: int) -> list[int]:
    """A process or thread that ends meanwhile has none."""
    found: list[int] = []
    for thread in threads(pid):
        with contextlib.suppress(OSError):
            found += map(int, read(f"{thread}/children").split())
    return found
