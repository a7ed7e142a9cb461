"""Looks at a process in the middle of its calls: where is each of its threads?"""

from __future__ import annotations

import math
import os
import random
import time
from array import array
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.protocol import MOST_LOOKS
from gpu_runner.supervisor.host.channel import Channel
from gpu_runner.supervisor.runner.freeze import Freezer
from gpu_runner.supervisor.work.mapped import CodeMaps

STACK_BYTES = 16 << 10  # chosen: the frames between a library's loop and who has called it
_LEAST_PAUSE_S, _MOST_PAUSE_S = 0.0005, 0.003  # chosen: between two looks at a call
_LONGEST_S = 0.1  # chosen: a longer call is looked at more than once
_AIMED_SHARE = 0.8  # chosen: the others come at any time from a call's release to its answer
_LATE_S = 0.0002  # a pause ends so much later than it should, and a thread stops
_STOPPING_S = 0.05  # chosen: a stopped thread is off its processor far sooner
_WORKS = "-1"  # in no call of the operating system, by proc(5)


@dataclass(frozen=True)
class Place:
    """Where a thread stood: the next instruction, and the words on its stack.

    code: number of its process's code, as that was then. is_idle: it was in the operating system,
    and is not a process's first thread, which makes the calls.
    """

    code: int
    at: int
    stack: array[int]
    is_idle: bool = False


class Onlooker:
    """Stops a process for a moment at random times, and notes where its threads are.

    The process learns that it was stopped when it goes on, and not before: what it is first seen at
    in a call is what it wanted to do.
    """

    def __init__(self, call_s: float) -> None:
        """`call_s` is how long a call takes, which ends shortly before it is answered."""
        self.looks: list[list[Place]] = []
        self.codes = CodeMaps()
        self.answered_s = math.inf
        """How long it takes at least until a call is answered."""
        self.gate_s = 0.0
        """How long it takes from the opening of the gate until a call is over; 0 without a gate."""
        self._call_s = call_s
        self._is_blind = False  # where this host does not tell where a thread is
        self._rng = random.SystemRandom()

    @property
    def has_seen_enough(self) -> bool:
        """Whether there is no use in another look."""
        return self._is_blind or len(self.looks) >= MOST_LOOKS

    def __call__(self, freezer: Freezer, channel: Channel) -> None:
        """Look at a call again and again, until it is answered."""
        pause_s = self._first_pause_s()
        while not self.has_seen_enough and not channel.is_readable(pause_s):
            freezer.halt()
            try:
                self.looks.append(self._look(freezer.tree()))
            finally:
                freezer.thaw()
            pause_s = self._rng.uniform(_LEAST_PAUSE_S, _MOST_PAUSE_S)

    def _first_pause_s(self) -> float:
        """From the call's beginning: it begins when the gate opens, if there is one."""
        is_aimed = self._rng.random() < _AIMED_SHARE
        if is_aimed and self.gate_s > 0:
            return max(self._rng.uniform(-_LATE_S, min(self.gate_s, _LONGEST_S)), 0.0)
        end_s = min(self.answered_s, _LONGEST_S)
        begin_s = end_s - 2 * self._call_s - _LATE_S if is_aimed else 0.0
        return self._rng.uniform(max(begin_s, 0.0), end_s)

    def _look(self, tree: list[int]) -> list[Place]:
        return [place for pid in tree for place in self._places(pid)]

    def _places(self, pid: int) -> list[Place]:
        found = []
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            return []
        code = self.codes.now(pid)
        for thread in threads:
            words = self._registers(f"/proc/{pid}/task/{thread}/syscall")
            if len(words) > 1:
                stack = _stack(pid, int(words[-2], 16))
                is_idle = words[0] != _WORKS and thread != str(pid)
                found.append(Place(code, int(words[-1], 16), stack, is_idle))
        return found

    def _registers(self, path: str) -> list[str]:
        """The kernel's line about a thread, once it stands still; empty if it never does."""
        deadline = time.monotonic() + _STOPPING_S
        while True:
            try:
                words = Path(path).read_text().split()
            except PermissionError:
                self._is_blind = True
                return []
            except OSError:  # it has ended
                return []
            if words != ["running"]:
                return words
            if time.monotonic() > deadline:
                return []


def _stack(pid: int, pointer: int) -> array[int]:
    words = array("Q")
    try:
        descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    except OSError:
        return words
    try:
        for size in (STACK_BYTES, 4096 - pointer % 4096):  # the stack may end before
            try:
                found = os.pread(descriptor, size, pointer)
            except OSError:
                continue
            words.frombytes(found[: len(found) // 8 * 8])
            return words
    finally:
        os.close(descriptor)
    return words
