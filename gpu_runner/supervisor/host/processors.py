"""Which processors measured processes get, and which are left to everybody else."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

_SYSTEM = Path("/sys/devices/system/cpu")


def by_core(cpus: Collection[int]) -> list[list[int]]:
    """Processors grouped by the physical core that they share, as far as the kernel knows it."""
    cores: dict[str, list[int]] = {}
    for cpu in sorted(cpus):
        cores.setdefault(_siblings(cpu), []).append(cpu)
    return list(cores.values())


@functools.cache
def _siblings(cpu: int) -> str:
    with contextlib.suppress(OSError):
        return (_SYSTEM / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    return str(cpu)


def measured_of(cpus: Collection[int]) -> list[int]:
    """One processor of each physical core but the first: nothing else runs on those cores.

    Two threads of one core take each other's time. A host of one core, or one processor, has to
    share it.
    """
    first, *others = by_core(cpus)
    if others:
        return [core[0] for core in others]
    return first[1:] or first


def measured_cpus() -> list[int]:
    """The processors of measured processes, of those that the calling thread may use."""
    return measured_of(os.sched_getaffinity(0))


def has_own_cpu() -> bool:
    """Whether the calling thread may use a processor that measured processes cannot take."""
    return not os.sched_getaffinity(0) <= set(measured_cpus())


def team_size(team: int = 0) -> int:
    """Threads that a runner's OpenMP teams have: one for each measured processor.

    With `team`, in a process that is not timed: so many at least, and one for each processor. An
    even number becomes odd, or sizes that are powers of two would hide what a division drops.
    """
    return max(team, len(os.sched_getaffinity(0))) | 1 if team else len(measured_cpus())


def team_environment(team: int = 0) -> dict[str, str]:
    """What tells OpenMP and numba of a team's size; see `team_size`.

    They would count processors before their process is moved to those.
    """
    return dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(team_size(team)))


@contextmanager
def keeping_off(measured: Collection[int]) -> Iterator[None]:
    """Have the calling thread run elsewhere meanwhile, where there is another processor."""
    before = os.sched_getaffinity(0)
    taken = {_siblings(cpu) for cpu in measured}
    others = {cpu for cpu in before if _siblings(cpu) not in taken} or before - set(measured)
    _move(others or before)
    try:
        yield
    finally:
        _move(before)


def _move(cpus: Collection[int]) -> None:
    with contextlib.suppress(OSError):  # somebody has just changed what this host may use
        os.sched_setaffinity(0, cpus)
