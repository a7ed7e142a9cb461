"""A control group for each jail, where this host lets us make one: exact limits, and one kill."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
from pathlib import Path

from gpu_runner.supervisor.host.leftovers import OUR_PREFIX

_ROOT = Path("/sys/fs/cgroup")
_NEEDED = {"memory", "pids"}
_KILL_S = 5.0  # chosen: what outlives SIGKILL for longer hangs in the kernel
_ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
_numbers = itertools.count(1)


class Group:
    """One group of processes with limits. `close` ends all that is in it, and removes it."""

    def __init__(self, parent: Path, memory_bytes: int, processes: int) -> None:
        """Make it under `parent`. Raises `OSError` where that fails."""
        self.path = parent / f"{OUR_PREFIX}{os.getpid()}-{next(_numbers)}"
        self.path.mkdir()
        try:
            self._write("memory.max", str(memory_bytes))
            self._write("pids.max", str(processes))
            self._write("memory.oom.group", "1")
            with contextlib.suppress(OSError):  # a kernel without swap has no such file
                self._write("memory.swap.max", "0")
        except OSError:
            self.path.rmdir()
            raise

    def limit(self, memory_bytes: int) -> None:
        """Change how much memory it may take."""
        with contextlib.suppress(OSError):
            self._write("memory.max", str(memory_bytes))

    def command(self, program: list[str]) -> list[str]:
        """The command line that enters the group and becomes `program`."""
        return ["/bin/sh", "-c", _ENTER, str(self.path), *program]

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel killed something in it for reaching its own limit."""
        events = self._events()
        return events.get("oom_kill", 0) > 0 and events.get("oom", 0) > 0

    @property
    def killed_for_the_host(self) -> bool:
        """Whether the kernel killed something in it although it had not reached its limit."""
        events = self._events()
        return events.get("oom_kill", 0) > 0 and events.get("oom", 0) == 0

    def _events(self) -> dict[str, int]:
        with contextlib.suppress(OSError, ValueError):
            lines = (self.path / "memory.events").read_text().splitlines()
            return {name: int(count) for name, count in (line.split() for line in lines)}
        return {}

    def kill(self) -> None:
        """Kill everything in it at once; nothing can fork its way out."""
        with contextlib.suppress(OSError):
            self._write("cgroup.kill", "1")

    def close(self) -> None:
        """Kill what is left and remove the group; waits for processes to be gone."""
        self.kill()
        deadline = time.monotonic() + _KILL_S
        while time.monotonic() < deadline:
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return
            except OSError:  # a process is not reaped yet
                time.sleep(0.01)
            else:
                return

    def _write(self, name: str, value: str) -> None:
        (self.path / name).write_text(value)


@functools.cache
def available(root: Path = _ROOT, membership: Path = Path("/proc/self/cgroup")) -> Path | None:
    """The group under which groups with limits can be made: our own, or the one above it.

    Ours only where it holds no process but can pass limits on, which is what a service manager
    gives a service that asks for delegation. None where there is no such group, as in most
    containers: then memory is watched instead, and processes are counted by user.
    """
    own = _own(root, membership)
    if own is None:
        return None
    candidates = [own] if own == root else [own, own.parent]
    return next((path for path in candidates if _usable(path)), None)


def _own(root: Path, membership: Path) -> Path | None:
    with contextlib.suppress(OSError):
        for line in membership.read_text().splitlines():
            number, _, path = line.split(":", 2)
            if number == "0" and (root / "cgroup.controllers").exists():
                own = root / path.lstrip("/")
                return own if own.is_dir() else None
    return None


def _usable(path: Path) -> bool:
    """Whether a group with limits can be made here; tries it."""
    try:
        passed_on = set((path / "cgroup.subtree_control").read_text().split())
        if not passed_on >= _NEEDED:
            if not _delegated(path):
                return False  # what the rest of the host does with its groups is not ours to change
            (path / "cgroup.subtree_control").write_text("+memory +pids")
        Group(path, 1 << 30, 100).close()
    except OSError:
        return False
    return True


def _delegated(path: Path) -> bool:
    """Whether the service manager has left this group to its service (Delegate=yes)."""
    for attribute in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(path, attribute) == b"1":
                return True
    return False


def limits_name() -> str:
    """What enforces the limits of a jail on this host, for a result's environment."""
    path = available()
    if path is None:
        return "memory checked at least ten times a second, processes counted per user"
    return f"control group under {path}"
