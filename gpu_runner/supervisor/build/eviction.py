"""Keeps the cache of builds below a size: what was not asked for the longest goes first."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

IN_USE_S = 24 * 3600.0
"""A build that was asked for so recently stays whatever it takes: an evaluation may be using it."""


def evict(builds: Path, limit_bytes: float) -> int:
    """Remove builds that were not asked for in a day while all take more than the limit.

    Returns how many went. Other processes may build, use and evict in the same folder meanwhile.
    """
    found = sorted(_entries(builds))
    excess = sum(size for _, size, _ in found) - limit_bytes
    removed = 0
    for _, size, folder in found:
        if excess <= 0:
            break
        if time.time() - _used_at(folder) < IN_USE_S:  # asked again: it may have been since
            continue
        shutil.rmtree(folder, ignore_errors=True)
        excess -= size
        removed += 1
    return removed


def _entries(builds: Path) -> Iterator[tuple[float, int, Path]]:
    """When each build was asked for last, its bytes, and its folder."""
    for folder in builds.iterdir() if builds.is_dir() else ():
        with contextlib.suppress(OSError):  # another process has removed it
            size = sum(path.stat().st_size for path in folder.iterdir())
            yield _used_at(folder), size, folder


def _used_at(folder: Path) -> float:
    """The latest time of its files, which `build.build` sets whenever it finds the result."""
    with contextlib.suppress(OSError):
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    return 0.0
