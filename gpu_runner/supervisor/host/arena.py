"""Shared memory between supervisor, oracle and runner: layout, poison and guard bands."""

from __future__ import annotations

import fcntl
import mmap
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass

from gpu_runner.data.poison import HUGE

ALIGNMENT = 512  # bytes; as memory of `cudaMalloc` is aligned: textures ask for it
GUARD_BYTES = 64 * 1024  # chosen: more than a loop's last block of threads writes beyond its end
SHIFTS = 128  # a region starts at one of so many multiples of ALIGNMENT
_POOL_BYTES = 1 << 20  # chosen: noise that seldom repeats
_HUGE = bytes(byte | HUGE for byte in range(256))
SEAL_FUTURE_WRITE = 0x0010  # linux/fcntl.h; only mappings made before may still write


@dataclass(frozen=True)
class Region:
    """One tensor's bytes in an arena."""

    offset: int
    nbytes: int

    @property
    def end(self) -> int:
        """First byte behind the region."""
        return self.offset + self.nbytes


def span_bytes(sizes: Sequence[int]) -> int:
    """Size of an arena that can hold regions of these sizes at any shift."""
    slack = GUARD_BYTES + ALIGNMENT * (SHIFTS + 1)
    return sum(sizes) + slack * len(sizes) + GUARD_BYTES if sizes else 0


def place(sizes: Sequence[int], rng: random.Random) -> list[Region]:
    """Regions at shifted, aligned offsets, with a guard band before and behind each."""
    regions = []
    cursor = 0
    for size in sizes:
        start = cursor + GUARD_BYTES + ALIGNMENT * rng.randrange(SHIFTS)
        start = -(-start // ALIGNMENT) * ALIGNMENT
        regions.append(Region(start, size))
        cursor = start + size
    return regions


def extent(regions: Sequence[Region]) -> tuple[int, int]:
    """The range that holds the regions and their guard bands."""
    if not regions:
        return 0, 0
    return regions[0].offset - GUARD_BYTES, regions[-1].end + GUARD_BYTES


class Arena:
    """An anonymous shared file and the supervisor's mapping of it."""

    def __init__(self, name: str) -> None:
        """Create an empty arena; `resize` gives it its size."""
        self.descriptor = os.memfd_create(f"kbench-{name}", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        self._map: mmap.mmap | None = None
        self.view = memoryview(b"")

    @property
    def word(self) -> str:
        """How a runner is told of it."""
        return str(self.descriptor)

    @property
    def size(self) -> int:
        """Bytes that it has now."""
        return len(self.view)

    def resize(self, size: int) -> None:
        """Set the size once, or grow it while nobody else has mapped it."""
        self._unmap()
        os.ftruncate(self.descriptor, size)
        if size > 0:
            self._map = mmap.mmap(self.descriptor, size)
            self.view = memoryview(self._map)

    def forget(self) -> None:
        """Give its pages back: it reads as zeros. Not for a sealed one, which only takes writes."""
        if self._map is not None:
            self._map.madvise(mmap.MADV_REMOVE)

    def seal(self) -> None:
        """From now on no process can map it writable; mappings that exist go on writing."""
        self._add_seals(SEAL_FUTURE_WRITE)

    def seal_size(self) -> None:
        """From now on nobody can shrink it, which would kill the supervisor as it reads."""
        self._add_seals(0)

    def _add_seals(self, seals: int) -> None:
        seals |= fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)

    def close(self) -> None:
        """Give the memory back."""
        self._unmap()
        os.close(self.descriptor)

    def _unmap(self) -> None:
        self.view.release()
        if self._map is not None:
            self._map.close()
            self._map = None


@dataclass(frozen=True)
class DeviceArena:
    """Memory of a CUDA device that the oracle owns: a descriptor that a runner imports."""

    descriptor: int
    size: int

    @property
    def word(self) -> str:
        """How a runner is told of it."""
        return f"{self.descriptor}:{self.size}"


class Poison:
    """Huge random values at any offset, the same when asked again: a new draw for each call."""

    def __init__(self, rng: random.Random) -> None:
        """Draw a pool of random bytes; every call reads it from another place."""
        self._rng = rng
        self._pool = memoryview(rng.randbytes(_POOL_BYTES).translate(_HUGE) * 2)
        self._phase = 0

    def renew(self) -> None:
        """Draw the pattern of the next call."""
        self._phase = self._rng.randrange(_POOL_BYTES)

    def fill(self, view: memoryview, low: int, high: int) -> None:
        """Write the pattern to view[low:high]."""
        for at in range(low, high, _POOL_BYTES):
            stop = min(at + _POOL_BYTES, high)
            view[at:stop] = self._pattern(at, stop)

    def intact(self, view: memoryview, low: int, high: int) -> bool:
        """Whether view[low:high] still holds the pattern; at most a pool's size at once."""
        return bytes(view[low:high]) == bytes(self._pattern(low, high))

    def _pattern(self, low: int, high: int) -> memoryview:
        start = (low + self._phase) % _POOL_BYTES
        return self._pool[start : start + (high - low)]
