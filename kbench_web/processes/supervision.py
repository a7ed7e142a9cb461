"""Keeps a set of programs running, makes one log of what they print, and stops them all."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TextIO


@dataclass(frozen=True, kw_only=True)
class Program:
    """What to run. stop_last: others need it while they stop.

    keeps: which of our own environment variables it gets: names, and how names begin, which end
    with an underscore; None gives it all.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    keeps: tuple[str, ...] | None = None
    stop_last: bool = False

    def variables(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Its environment."""
        return {**self._kept(ours), **self.environment, "PYTHONUNBUFFERED": "1"}

    def _kept(self, ours: Mapping[str, str]) -> Mapping[str, str]:
        if self.keeps is None:
            return ours
        beginnings = tuple(each for each in self.keeps if each.endswith("_"))
        return {n: v for n, v in ours.items() if n in self.keeps or n.startswith(beginnings)}


class ProgramProcess:
    """One process of a program: in a session of its own, its output read line by line."""

    def __init__(self, program: Program, say: Callable[[str, str], None]) -> None:
        """Start it. `say(name, line)` gets what it prints, from a thread."""
        self.program = program
        self._family: dict[int, str] = {}
        self._process = subprocess.Popen(
            [*_dies_with_us(), *program.command],
            env=program.variables(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal is ours to pass on
        )
        self._reader = threading.Thread(target=self._read, args=(say,), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status, or None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Ask it to finish what it does and stop."""
        self._family = {pid: _birth(pid) for pid in descendants(self._process.pid)}
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it, and everything that it has started and not ended itself, at once."""
        family = self._family | {pid: _birth(pid) for pid in descendants(self._process.pid)}
        self._signal(signal.SIGKILL)
        for pid, birth in family.items():
            if not birth or _birth(pid) != birth:
                continue  # it has ended, and its number may be another's now
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """Take in the last of its output; it must have ended."""
        self._reader.join(timeout=2)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _read(self, say: Callable[[str, str], None]) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        with stream:
            for line in stream:
                say(self.program.name, line.decode(errors="replace").rstrip())


def descendants(pid: int) -> list[int]:
    """Process ids of everything that descends from `pid` (Linux; elsewhere empty)."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                found += [child, *descendants(child)]
    return found


def _birth(pid: int) -> str:
    """When the process was started, in clock ticks after the boot; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _dies_with_us() -> list[str]:
    """Prefix that has the kernel stop the program if we are killed without a chance to do it."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)  # ANSI foregrounds, none of them red


def _now() -> datetime:
    return datetime.now().astimezone()


class Console:
    """Prints whole lines as `time name | text`, each name in a colour of its own on a terminal."""

    def __init__(self, out: TextIO, names: list[str], clock: Callable[[], datetime] = _now) -> None:
        """Print to `out`; `names` are all that will be used, so that columns fit."""
        self._out = out
        self._clock = clock
        self._width = max(map(len, names))
        self._colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
        self._coloured = out.isatty() and "NO_COLOR" not in os.environ
        self._lock = threading.Lock()

    def line(self, name: str, text: str) -> None:
        """Print one line of the program `name`."""
        label = f"{self._clock():%H:%M:%S} {name:<{self._width}} |"
        if self._coloured:
            label = f"\033[{self._colours.get(name, 0)}m{label}\033[0m"
        with self._lock:
            self._out.write(f"{label} {text}\n")
            self._out.flush()


_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 15.0
_HEALTHY_S = 30.0
_TICK_S = 0.1

Say = Callable[[str, str], None]


@dataclass
class _Place:
    """A program, its process if it has one, and when the next may be started."""

    program: Program
    process: ProgramProcess | None = None
    started_at: float = 0.0
    not_before: float = 0.0
    pause_s: float = _FIRST_PAUSE_S


class Supervisor:
    """Starts programs, restarts those that die after a growing pause, stops them in order."""

    def __init__(self, say: Say) -> None:
        """Report what happens and what the programs print to `say(name, line)`."""
        self._say = say
        self._places: list[_Place] = []

    def add(self, program: Program) -> None:
        """Run `program` from the next `tick` on."""
        self._places.append(_Place(program))

    def tick(self) -> None:
        """Start what is due, take leave of what died, and wait a moment."""
        for place in self._places:
            if place.process is not None and place.process.status is not None:
                self._bury(place, place.process)
            if place.process is None and time.monotonic() >= place.not_before:
                place.process = ProgramProcess(place.program, self._say)
                place.started_at = time.monotonic()
        time.sleep(_TICK_S)

    def stop(self, patience_s: float, impatient: Callable[[], bool]) -> None:
        """Ask all to stop, first those that need others; kill what takes longer than that.

        impatient: looked at while waiting; true kills at once.
        """
        for last in (False, True):
            group = [
                place.process
                for place in self._places
                if place.process is not None and place.program.stop_last is last
            ]
            for process in group:
                process.terminate()
            self._wait(group, patience_s, impatient)
            for process in group:
                if process.status is None:
                    self._say(process.program.name, "did not stop, so it was killed")
                process.kill()  # also what it may have left behind
                process.close()

    def _bury(self, place: _Place, process: ProgramProcess) -> None:
        process.close()
        now = time.monotonic()
        if now - place.started_at > _HEALTHY_S:
            place.pause_s = _FIRST_PAUSE_S
        self._say(
            place.program.name,
            f"ended with status {process.status}; starting again in {place.pause_s:g} s",
        )
        place.process = None
        place.not_before = now + place.pause_s
        place.pause_s = min(2 * place.pause_s, _LONGEST_PAUSE_S)

    def _wait(
        self, group: list[ProgramProcess], patience_s: float, impatient: Callable[[], bool]
    ) -> None:
        deadline = time.monotonic() + patience_s
        while any(process.status is None for process in group):
            if impatient() or time.monotonic() > deadline:
                return
            time.sleep(_TICK_S)
