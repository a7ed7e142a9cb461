"""How much memory a tree of processes holds, by whatever road it got it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

_BLOCK_BYTES = 512  # unit of st_blocks
_FIELDS = ("RssAnon", "RssShmem", "VmPTE")


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
