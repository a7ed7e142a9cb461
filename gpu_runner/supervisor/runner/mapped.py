"""Which files a process has mapped as code, by what the operating system says of it."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.archive import digest
from gpu_runner.supervisor.host.jail import SYSTEM_PATHS, WORK_FOLDER, python_paths
from gpu_runner.supervisor.host.maps import Mapping, mappings
from gpu_runner.supervisor.host.proc import descendants

UNREADABLE = "unreadable"
"""In place of a digest: the file is gone or too large, or its process lets nobody look at it."""

_LIMIT_BYTES = 1 << 30  # chosen: more than all of a toolchain's libraries that are not installed


@dataclass(frozen=True)
class File:
    """A file that is mapped as code: its path in the jail, and which file that is."""

    path: str
    device: str
    inode: int


@dataclass(frozen=True)
class Mapped:
    """Files that are mapped as code.

    installed: paths on this host that no jail can write to, with their sizes. own: digests of all
    others, by path.
    """

    installed: frozenset[tuple[str, int]] = frozenset()
    own: frozenset[tuple[str, str]] = frozenset()

    def __or__(self, other: Mapped) -> Mapped:
        """What either has."""
        return Mapped(self.installed | other.installed, self.own | other.own)


class Witness:
    """Gathers what the processes of a target have mapped, looked at while they stand still."""

    def __init__(self) -> None:
        self.seen = Mapped()

    def look(self, pid: int, ours: Iterable[Path] = ()) -> None:
        """Add what is mapped below `pid`; see `mapped`."""
        self.seen |= mapped(pid, ours)


def mapped(pid: int, ours: Iterable[Path] = ()) -> Mapped:
    """What the processes below `pid` have mapped; `ours` are libraries that we put into the jail.

    They should stand still, or what is said of them may be out of date.
    """
    installed, own, left = set(), set(), _LIMIT_BYTES
    roots = (*_installed(), *map(str, ours))
    for each in [pid, *descendants(pid)]:
        for file in _files(each):
            size = _size(file.path) if _is_below(file.path, roots) else None
            if size is not None:
                installed.add((file.path, size))
            else:
                content = _content(each, file, left)
                own.add((file.path, digest(content) if 0 < len(content) <= left else UNREADABLE))
                left = max(left - len(content), 0)
    return Mapped(frozenset(installed), frozenset(own))


@functools.cache
def _installed() -> tuple[str, ...]:
    jail = shutil.which("bwrap")  # wherever this host has it
    around = [os.path.realpath(jail)] if jail else []
    return (*SYSTEM_PATHS, *map(str, python_paths()), *around)


def _is_below(path: str, roots: Iterable[str]) -> bool:
    in_jail = path.startswith(f"{WORK_FOLDER}/")
    found = (root for root in roots if path == root or path.startswith(f"{root}/"))
    return any(not in_jail or root.startswith(f"{WORK_FOLDER}/") for root in found)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _files(pid: int) -> set[File]:
    """Files behind the executable pages of a process; a driver's devices are none."""
    found: list[Mapping] = []
    with contextlib.suppress(OSError):  # it has ended
        found = mappings(pid)
    return {
        File(each.path, each.device, each.inode)
        for each in found
        if each.is_code and each.inode and not each.path.startswith("/dev/nvidia")
    }


def _content(pid: int, file: File, limit: int) -> bytes:
    """Of the very file that is mapped, read through the process's own root or descriptors.

    Empty if nobody can read it; a byte more than `limit` if it is longer.
    """
    places = [Path(f"/proc/{pid}/root{file.path}")] if file.path.startswith("/") else []
    with contextlib.suppress(OSError):
        places += Path(f"/proc/{pid}/fd").iterdir()
    for place in places:
        # Open only the file itself: others may be a GPU's nodes, or a pipe that keeps us waiting.
        with contextlib.suppress(OSError):
            status = os.stat(place)
            device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
            if (status.st_ino, device) == (file.inode, file.device):
                with place.open("rb") as opened:
                    return opened.read(limit + 1)
    return b""
