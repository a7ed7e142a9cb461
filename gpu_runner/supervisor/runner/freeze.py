"""Stops a runner's whole process tree between calls, so that it runs only while it is timed."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

from gpu_runner.supervisor.host import proc
from gpu_runner.supervisor.host.channel import Channel
from gpu_runner.supervisor.host.killed import KilledFromOutside, is_dead, status_of
from gpu_runner.supervisor.host.proc import Schedule

_LONGEST_S = 5.0  # chosen: a signal stops a process at once, but in a driver's call
_DYING_S, _DYING_LOOK_S = 2.0, 0.005  # what is killed still runs while it gives its memory back
_CPU_CLOCK = 2  # CPUCLOCK_SCHED of the kernel's posix-timers.h
_BUSY_SHARE = 2  # a thread that ran for less than this part of the busiest one's time is idle
_SLACK_NS = 20_000  # what the last switch of a thread may still add to its time
_MOST_IDLE, _IDLE_EACH = 16, 4
"""Waiting threads whose costs are left out, of a process and for each processor: one that works for
as little as that is not seen either."""
_LATE_NS, _LATE_TIMES = 10_000_000, 2  # what may be accounted late, and how often in a process


class NotStopped(Exception):
    """The tree could not be stopped, or ran although it was: the text says which."""


_NEW = Schedule(0, 0)


class Freezer:
    """Stops and continues everything below a process, and the process itself where it is bare.

    Nothing inside can undo it but a signal that was arranged before, such as a timer's; `thaw`
    finds that out by the time that the threads have run.
    """

    def __init__(self, pid: int, *, bare: bool, processors: int = 1, idle_ns: float = 0.0) -> None:
        """`pid` is the jail's outermost process, or the program itself where there is no jail.

        processors: how many CPUs the tree may use at once. idle_ns: what it costs a thread that
        waits to be continued and stopped again.
        """
        self._pid, self._bare, self._processors = pid, bare, processors
        self._idle_ns = idle_ns
        self._late = 0
        self._stopped: list[int] = []
        self._living: list[int] = []  # of those
        self._first: frozenset[int] = frozenset()  # the jail's first process and the runner
        self._before: dict[str, Schedule] = {}
        self._after: dict[str, Schedule] = {}
        self._now: dict[str, Schedule] = {}
        self._clocks: dict[int, int] = {}
        self._clocks_before: dict[int, int] = {}

    @property
    def pid(self) -> int:
        """Of the process that everything it stops is below."""
        return self._pid

    def halt(self) -> None:
        """Tell those that were stopped last time to stop, and wait for nothing."""
        for pid in reversed(self._stopped):
            _signal(pid, signal.SIGSTOP)

    def freeze(self) -> None:
        """Stop the tree; returns when every thread stands still. Raises `NotStopped`."""
        self.halt()  # those of last time first: no look around before
        # Before the stopping itself costs them time.
        self._before, self._after = self._now, proc.schedules(self._stopped)
        deadline = time.monotonic() + _LONGEST_S
        while True:
            is_late = time.monotonic() > deadline  # before: whoever looks may have been stopped
            tree = self.tree()
            moving = [pid for pid in tree if not proc.is_still(pid)]
            for pid in moving:
                _signal(pid, signal.SIGSTOP)
            if not moving:
                break
            if is_late:
                raise NotStopped(f"one of its processes didn't stop within {_LONGEST_S:g} s")
        self._stopped = tree
        self._living = [pid for pid in tree if not is_dead(pid)]
        self._first = self._first or frozenset(self._living)
        self._now = proc.settled(tree)
        self._clocks_before, self._clocks = self._clocks, {pid: _clock_ns(pid) for pid in tree}

    def check(self) -> None:
        """Raise `NotStopped` if anything of the tree has run since it was stopped.

        Raises `KilledFromOutside` if something of it was: who dies of that has not run.
        """
        moved = self._moved()
        self._check_deaths(_DYING_S if moved else 0.0)
        if moved:
            raise NotStopped(moved)

    def _moved(self) -> str:
        """What the tree has done since it was stopped; dying is not told from running."""
        tree = self.tree()
        if set(tree) - set(self._stopped):
            return "started a process while it was stopped"
        for thread, schedule in proc.schedules(tree).items():
            known = self._now.get(thread)
            if known is None or not self._stood_still(known, schedule):
                return "ran while it was stopped"
        return "" if all(map(proc.is_still, tree)) else "ran while it was stopped"

    def _check_deaths(self, patience_s: float) -> None:
        """Raise if a process has died since it was stopped; wait so long for those that move.

        Only SIGKILL ends what is stopped. Whoever ended in another way has run before.
        """
        deadline = time.monotonic() + patience_s
        while True:
            # Before: who dies in between is seen below.
            is_last = time.monotonic() >= deadline or all(map(proc.is_still, self._living))
            dead = [pid for pid in self._living if is_dead(pid)]
            if dead or is_last:
                break
            time.sleep(_DYING_LOOK_S)
        if dead and all(status_of(pid) == -signal.SIGKILL for pid in dead):
            raise KilledFromOutside("the process was killed from outside while it was stopped")
        if dead:
            raise NotStopped("ran while it was stopped")

    def _stood_still(self, known: Schedule, now: Schedule) -> bool:
        """Whether a thread has not run since it was stopped, as far as its time tells.

        A virtual processor that its host takes away while a thread leaves it accounts that later,
        as time without a slice. That is allowed for now and then, and counts as time of the next
        call all the same: nothing is to be gained by looking like it.
        """
        grown_ns = now.ran_ns - known.ran_ns
        if grown_ns <= _SLACK_NS:
            return True
        self._late += 1
        given = now.slices != known.slices or now.slices == 0
        return not given and grown_ns <= _LATE_NS and self._late <= _LATE_TIMES

    def ran_ns(self) -> float:
        """Least time between the last two stops for which the tree must have been at work.

        By what the host's scheduler has accounted to it: it ran no shorter than its busiest thread,
        nor than all threads of a process, ended ones too, on every processor that it may use. What
        continuing and stopping cost those that waited meanwhile is no work: beside a pool of
        threads it may be more than that of a short call.
        """
        busiest = max(
            (
                now.ran_ns - self._before.get(thread, _NEW).ran_ns
                for thread, now in self._now.items()
            ),
            default=0,
        )
        worked = (ran - self._idled_ns(pid) for pid, ran in self._spent().items())
        return max(busiest, max(worked, default=0) / self._processors)

    def held_ns(self, wall_ns: int, *, on_cpu: bool) -> float:
        """Least time for which a call has had its processors, or a device: `wall_ns` saw all of it.

        Of that, others may have kept the tree from running for a while.
        """
        return self.ran_ns() if on_cpu else max(self.ran_ns(), wall_ns - self.delayed_ns())

    @property
    def holds(self) -> bool:
        """Whether the runner still lived when it was stopped last: since then it has done nothing.

        Who dies between its acknowledgement and the stop may have done that itself.
        """
        return bool(self._first) and self._first.issubset(self._living)

    @property
    def threads(self) -> int:
        """How many the tree has, as of the last stop."""
        return len(self._now)

    def others_ns(self) -> list[int]:
        """How long each thread but a process's busiest has run between the last two stops."""
        return [ran for pid in self._clocks for ran in self._others(pid)]

    def _idled_ns(self, pid: int) -> float:
        """Of a process's processor time, what its being continued and stopped explains."""
        most = max(_MOST_IDLE, _IDLE_EACH * self._processors)
        return sum(min(ran, self._idle_ns) for ran in self._others(pid)[-most:])

    def _others(self, pid: int) -> list[int]:
        """Of the threads that a process had at both stops, in order of how long they ran."""
        folder = f"/proc/{pid}/task/"
        ran = sorted(
            now.ran_ns - self._before[thread].ran_ns
            for thread, now in self._now.items()
            if thread.startswith(folder) and thread in self._before
        )
        return ran[:-1]

    def _spent(self) -> dict[int, int]:
        """Processor time of each process between the last two stops, of ended threads too."""
        return {pid: now - self._clocks_before.get(pid, 0) for pid, now in self._clocks.items()}

    def delayed_ns(self) -> int:
        """How long others kept the tree from running between the last two stops.

        By the thread that waited longest for a processor, less what threads of its own process
        may have cost it: nothing is to be gained by threads that keep each other waiting.
        """
        # How long a thread has run is known once it stands, how long it waited only before that.
        rows = [
            Schedule(
                self._now[thread].ran_ns - before.ran_ns, at_once.delayed_ns - before.delayed_ns
            )
            for thread, at_once in self._after.items()
            for before in (self._before.get(thread, _NEW),)
            if thread in self._now
        ]
        if not rows:
            return 0
        busy_ns = max(row.ran_ns for row in rows) / _BUSY_SHARE
        busy = [row for row in rows if row.ran_ns >= busy_ns]
        last = max(busy, key=lambda row: row.delayed_ns)
        # As many busy threads as processors need not share one; the others, or more, may have.
        siblings = rows if len(busy) > self._processors else [r for r in rows if r not in busy]
        shared_ns = sum(row.ran_ns for row in siblings if row is not last)
        ended_ns = sum(self._spent().values()) - sum(row.ran_ns for row in rows)
        shared_ns += max(0, ended_ns)
        return max(0, last.delayed_ns - shared_ns)

    def thaw(self) -> None:
        """Let the tree run."""
        for pid in self._stopped:
            _signal(pid, signal.SIGCONT)

    def tree(self) -> list[int]:
        """Ids of all processes that it stops."""
        return (
            [self._pid, *proc.descendants(self._pid)] if self._bare else proc.descendants(self._pid)
        )


Onlooker = Callable[[Freezer, Channel], None]
"""Sees to a tree that runs, until it answers on a channel: `work.onlooker`, `measure.aside`."""


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _clock_ns(pid: int) -> int:
    """Processor time of a process with all threads that it ever had (clock_getcpuclockid(3))."""
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPU_CLOCK)
    except OSError:  # it has ended
        return 0
