"""Keeps a set of programs running, makes one log of what they print, and stops them all."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TextIO

from kbench_web.processes.program import Program, ProgramProcess

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

    def __init__(self, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        """Report what happens and what the programs print to `say(name, line)`."""
        self._say = say
        self._clock = clock
        self._places: list[_Place] = []

    def add(self, program: Program) -> None:
        """Run `program` from the next `tick` on."""
        self._places.append(_Place(program))

    def tick(self) -> None:
        """Start what is due, take leave of what died, and wait a moment."""
        for place in self._places:
            if place.process is not None and place.process.status is not None:
                self._bury(place, place.process)
            if place.process is None and self._clock() >= place.not_before:
                place.process = ProgramProcess(place.program, self._say)
                place.started_at = self._clock()
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
                    self._say(process.program.name, "does not stop: killed")
                process.kill()  # also what it may have left behind
                process.close()

    def _bury(self, place: _Place, process: ProgramProcess) -> None:
        process.close()
        now = self._clock()
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
        deadline = self._clock() + patience_s
        while any(process.status is None for process in group):
            if impatient() or self._clock() > deadline:
                return
            time.sleep(_TICK_S)
