"""Which processes a site at work consists of, by kind, and what is done to them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_COMPILERS = {"g++", "cc1plus", "as", "ld", "collect2", "nvcc", "cicc", "ptxas", "cudafe++"}
_OF_UP = {
    "daphne": "web",
    "ingest_events": "ingest",
    "rqworker": "runs",
    "rqworker-pool": "calls",
}
"""A word of the command line -> a program of `manage.py up`."""
_DAEMONS = ("daemon (Redis)", "daemon (HTTPS)")
_REDIS = {"redis": "site's Redis", "redis-runners": "runners' Redis"}
"""The folder that a server works in -> its kind."""
PROGRAMS = (*_OF_UP.values(), *_REDIS.values(), *_DAEMONS)
WORKERS = ("worker of calls", "slot", "work-horse", "oracle")
JAILED = (
    *("jail of oracle", "inner jail of oracle"),
    *("compiler", "jail of compiler", "inner jail of compiler"),
    *("kernel", "jail of kernel", "inner jail of kernel"),
)
KINDS = (*PROGRAMS, *WORKERS, *JAILED)

_ENDS = (*PROGRAMS, "slot")  # what somebody may ask to end
_STOPS = (*PROGRAMS, *WORKERS)  # who is stopped in a call is late by its own clock, so no kernel
_TERM, _STOP = 0.1, 0.15  # shares of kills
_STOP_S = (2.0, 6.0, 20.0)
_LONG_STOP_S = 90.0  # longer than any silence that the site puts up with
_PATIENCE_S, _LOOK_S = 3.0, 0.02


class Process(NamedTuple):
    """A line of `ps`."""

    pid: int
    parent: int
    state: str
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of its program."""
        return Path(self.words[0]).name if self.words else ""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """What was done to a process, and when by `time.time`; stop_s: for so long it stood still."""

    kind: str
    signal: str
    at: float
    stop_s: float = 0.0


def processes() -> dict[int, Process]:
    """All that run now."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
            found[int(path.name)] = Process(int(path.name), int(parent), state, tuple(words[:-1]))
    return {pid: each for pid, each in found.items() if each.state not in "ZX"}


def by_kind(root: int) -> dict[str, list[int]]:
    """Process ids of everything that descends from `root`, by kind."""
    known = processes()
    children: dict[int, list[Process]] = {}
    for process in known.values():
        children.setdefault(process.parent, []).append(process)
    found: dict[str, list[int]] = {}

    def walk(process: Process, above: tuple[str, ...]) -> set[str]:
        """Sort a process and those below it; what stands below it, by plain names."""
        plain = _plain(process, above)
        below = {plain}.union(*(walk(c, (*above, plain)) for c in children.get(process.pid, ())))
        found.setdefault(_kind(plain, above, below), []).append(process.pid)
        return below

    for child in children.get(root, ()):
        walk(child, ())
    return {kind: pids for kind, pids in found.items() if kind in KINDS}


def _plain(process: Process, above: tuple[str, ...]) -> str:
    words = process.words
    if process.name == "bwrap":
        return "jail"
    if "jail" in above:
        if "gpu_runner.engine.oracle.oracle_main" in words:
            return "oracle"
        return "compiler" if process.name in _COMPILERS else "kernel"
    if "gpu_runner" in words:
        return _forked(above) or _DAEMONS["--site" in words]
    if process.name.startswith(("redis-server", "valkey-server")):
        return _redis(process.pid)
    return next((kind for word, kind in _OF_UP.items() if word in words), "")


def _forked(above: tuple[str, ...]) -> str:
    """What a daemon forks is a slot, and what that forks a work-horse."""
    if "slot" in above:
        return "work-horse"
    return "slot" if set(_DAEMONS) & set(above) else ""


def _redis(pid: int) -> str:
    with contextlib.suppress(OSError):
        return _REDIS.get(Path(f"/proc/{pid}/cwd").readlink().name, "")
    return ""


def _kind(plain: str, above: tuple[str, ...], below: set[str]) -> str:
    if plain == "jail":
        held = next((kind for kind in ("oracle", "compiler", "kernel") if kind in below), "")
        return f"{'inner ' * ('jail' in above)}jail of {held}"
    if plain == "calls" and "calls" in above:
        return "worker of calls"
    return plain


class Havoc(threading.Thread):
    """Signals processes of all kinds, chosen at random, until it is told to stop."""

    def __init__(
        self,
        look: Callable[[], dict[str, list[int]]],
        *,
        count: int,
        pause_s: float,
        chance: random.Random,
        long_stops: bool,
    ) -> None:
        """Signal `count` of the processes that `look` finds, one each `pause_s`.

        long_stops: whether `ingest` and `web` stand still for a long time, once each.
        """
        super().__init__(name="havoc", daemon=True)
        self.kills: list[Kill] = []
        self._look, self._chance = look, chance
        self._deck: list[str] = []
        self._count, self._pause_s = count, pause_s
        self._long = {count // 4: "ingest", count * 5 // 8: "web"} if long_stops else {}
        self._over = threading.Event()
        self._stopped: dict[int, threading.Timer] = {}

    def run(self) -> None:
        """Signal, and wait."""
        begin = time.monotonic()
        for number in range(self._count):
            due_at = begin + number * self._pause_s
            if self._over.wait(max(0.0, due_at - time.monotonic())):
                return
            kind = self._long.get(number, "") or self._next()
            self._strike(kind, _LONG_STOP_S if number in self._long else 0.0)

    def end(self) -> None:
        """Signal nobody any more, and let those go on that stand still."""
        self._over.set()
        self.join()
        for pid, timer in list(self._stopped.items()):
            timer.cancel()
            self._go_on(pid)

    def _next(self) -> str:
        """A kind; each comes once before any comes again."""
        if not self._deck:
            self._deck = self._chance.sample(KINDS, len(KINDS))
        return self._deck.pop()

    def _strike(self, kind: str, stop_s: float) -> None:
        pid = self._found(kind)
        while pid is None and not self._over.is_set():
            kind, stop_s = self._next(), 0.0
            pid = self._found(kind)
        if pid is None:
            return
        number, stop_s = self._signal_for(kind, stop_s)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            self.kills.append(Kill(kind=kind, signal=number.name, at=time.time(), stop_s=stop_s))
            if stop_s:
                timer = threading.Timer(stop_s, self._go_on, (pid,))
                self._stopped[pid] = timer
                timer.start()

    def _signal_for(self, kind: str, stop_s: float) -> tuple[signal.Signals, float]:
        if stop_s:
            return signal.SIGSTOP, stop_s
        drawn = self._chance.random()
        if drawn < _TERM and kind in _ENDS:
            return signal.SIGTERM, 0.0
        if _TERM <= drawn < _TERM + _STOP and kind in _STOPS:
            return signal.SIGSTOP, self._chance.choice(_STOP_S)
        return signal.SIGKILL, 0.0

    def _found(self, kind: str) -> int | None:
        """A process of that kind; some live for a moment, so it is waited for."""
        deadline = time.monotonic() + _PATIENCE_S
        while not self._over.wait(_LOOK_S) and time.monotonic() < deadline:
            pids = [pid for pid in self._look().get(kind, ()) if pid not in self._stopped]
            if pids:
                return self._chance.choice(pids)
        return None

    def _go_on(self, pid: int) -> None:
        self._stopped.pop(pid, None)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
