"""Puts shared memory out of all caches of the host, from outside the process that will read it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path

from gpu_runner.supervisor.host.arena import Region


class Flusher:
    """`kb_flush` of our own support library; lines of shared memory leave every core's caches."""

    def __init__(self, support: Path) -> None:
        """Load the library. Raises `OSError` if it is not there."""
        self._flush = ctypes.CDLL(str(support)).kb_flush
        self._flush.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        self._flush.restype = None

    def flush(self, view: memoryview, regions: Iterable[Region]) -> None:
        """Flush regions of a writable mapping."""
        if not view:
            return
        first = ctypes.c_char.from_buffer(view)
        base = ctypes.addressof(first)
        del first  # the mapping could not be closed while it exists
        for region in regions:
            self._flush(base + region.offset, region.nbytes)
