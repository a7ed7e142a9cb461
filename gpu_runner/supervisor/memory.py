"""How much memory a tree of processes holds, by whatever road it got it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

_BLOCK_BYTES = 512  # unit of st_blocks


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
    """Resident bytes of a process: private, and shared with others or with a memory file."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    fields = dict(line.split(":", 1) for line in lines if line.startswith(("RssAnon", "RssShmem")))
    size = {name: int(value.split()[0]) * 1024 for name, value in fields.items()}
    return size.get("RssAnon", 0), size.get("RssShmem", 0)


def _unnamed_files(pid: int) -> dict[tuple[int, int], int]:
    """Bytes of the files without a name that a process has open, by device and inode."""
    found = {}
    with contextlib.suppress(OSError):  # it has ended, or is no business of an ordinary user
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{pid}/fd/{name}")
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    inode = status.st_dev, status.st_ino
                    found[inode] = status.st_blocks * _BLOCK_BYTES
    return found
