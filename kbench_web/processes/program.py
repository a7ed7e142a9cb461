"""A program that is to run as long as the site does, and the process that runs it now."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


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
