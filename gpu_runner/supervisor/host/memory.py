"""How much memory a tree of processes holds, and how much this host can spare for one."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_BLOCK_BYTES = 512  # unit of st_blocks
_FIELDS = ("RssAnon", "RssShmem", "VmPTE")

LEAST_RESERVE_BYTES, MOST_RESERVE_BYTES, RESERVE_SHARE = 512 << 20, 4 << 30, 8
"""What a process must leave to the rest of its host, such as the site's database: an eighth of its
memory, between these two."""


def used_bytes(pids: Sequence[int], arenas: Sequence[int]) -> int:
    """Bytes that these processes hold: private, shared, and in files without a name.

    `arenas` are descriptors of this process, to memory that is ours and not held against them.
    Shared memory counts where it is mapped or where it is open, whichever is more.
    """
    ours = 0
    inodes = set()
    for descriptor in arenas:
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            ours += status.st_size
            inodes.add((status.st_dev, status.st_ino))
    private = mapped = 0
    files: dict[tuple[int, int], int] = {}
    for pid in pids:
        anonymous, shared = _resident(pid)
        private += anonymous
        mapped += max(0, shared - ours)
        files |= _unnamed_files(pid)
    opened = sum(size for inode, size in files.items() if inode not in inodes)
    return private + max(mapped, opened)


def _resident(pid: int) -> tuple[int, int]:
    """Bytes of a process: private with its page tables, and shared with others or a memory file."""
    size: dict[str, int] = {}
    for folder in _views(pid):
        with contextlib.suppress(OSError):
            # a process names itself as it likes
            lines = Path(folder, "status").read_text(errors="replace").splitlines()
            fields = dict(line.split(":", 1) for line in lines if line.startswith(_FIELDS))
            size = {name: int(value.split()[0]) * 1024 for name, value in fields.items()}
        if "RssAnon" in size:
            break
    return size.get("RssAnon", 0) + size.get("VmPTE", 0), size.get("RssShmem", 0)


def _views(pid: int) -> Iterator[str]:
    """Where a process can be looked at: where its first thread has ended, at the others."""
    yield f"/proc/{pid}"
    with contextlib.suppress(OSError):
        yield from (f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task"))


def _unnamed_files(pid: int) -> dict[tuple[int, int], int]:
    """Bytes of the files without a name that a process has open, by device and inode."""
    found = {}
    for folder in _views(pid):
        names: list[str] = []
        with contextlib.suppress(OSError):  # it has ended, or is no business of an ordinary user
            names = os.listdir(f"{folder}/fd")
        for name in names:
            with contextlib.suppress(OSError):
                status = os.stat(f"{folder}/fd/{name}")
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    inode = status.st_dev, status.st_ino
                    found[inode] = status.st_blocks * _BLOCK_BYTES
        if names:
            break
    return found


def spare_bytes() -> int:
    """Bytes that one more process may hold while this host keeps its reserve."""
    total, available = _host()
    reserve = min(max(total // RESERVE_SHARE, LEAST_RESERVE_BYTES), MOST_RESERVE_BYTES)
    return max(0, available - reserve)


def _host() -> tuple[int, int]:
    """Bytes in all, and those that are available; of the control group around us if it has less."""
    fields = _numbers(Path("/proc/meminfo"), separator=":")
    total = fields.get("MemTotal", sys.maxsize >> 10) << 10
    available = fields.get("MemAvailable", sys.maxsize >> 10) << 10
    for limit, used in group_limits():
        if limit < total:
            total, available = limit, min(available, max(0, limit - used))
    return total, available


def group_limits(
    root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")
) -> Iterator[tuple[int, int]]:
    """Limit and use, in bytes, of each control group around this process that has a limit.

    What was read from files and not used for long is no use: it is given back at need.
    """
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = membership.read_text().splitlines()
    for number, controllers, path in (line.split(":", 2) for line in lines if line.count(":") > 1):
        if number == "0":
            base, files = root, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            base = root / "memory"
            files = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        group = base / path.lstrip("/")
        for folder in [group, *group.parents]:
            yield from _limit_of(folder, *files)
            if folder == base:
                break


def _limit_of(folder: Path, limit: str, used: str, idle: str) -> Iterator[tuple[int, int]]:
    with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
        most, now = (int((folder / name).read_text()) for name in (limit, used))
        yield most, max(0, now - _numbers(folder / "memory.stat").get(idle, 0))


def _numbers(path: Path, separator: str | None = None) -> dict[str, int]:
    """The first number in each line of a file, by the word before it."""
    found = {}
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            name, *rest = line.split(separator, 1)
            with contextlib.suppress(ValueError, IndexError):
                found[name] = int(rest[0].split()[0])
    return found
