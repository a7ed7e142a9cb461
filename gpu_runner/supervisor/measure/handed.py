"""Hands a call's inputs to a torch runner on a CPU when the call begins."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpu_runner.data import wire
from gpu_runner.supervisor.host.arena import SEAL_FUTURE_WRITE, Arena, Region
from gpu_runner.supervisor.runner.gate import Handed

_PAGE = mmap.PAGESIZE


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


class HandedInputs:
    """Hands over large inputs in an unnamed file for each call, and small ones in a pocket.

    A process that keeps the file sees nothing of the next call's inputs. The pocket is one piece of
    memory for all calls; it holds a call's inputs only once the call has begun.
    """

    def __init__(self, flusher: Flusher) -> None:
        self._flusher = flusher
        self.pocket = Arena("pocket")
        self.pocket.resize(wire.POCKET_BYTES)
        self.pocket.seal_size()
        self._copy = memoryview(mmap.mmap(-1, wire.POCKET_BYTES))
        self._file = self._reader = -1
        self.first = 0
        """The offset in the arena where the handed bytes begin: a multiple of a page."""
        self.is_packed = False
        """Whether inputs are packed for a call."""

    @property
    def descriptor(self) -> int:
        """The descriptor of the last call's file, or of the pocket."""
        return self._file if self._file >= 0 else self.pocket.descriptor

    def pack(self, arena: memoryview, call: wire.Call, regions: Sequence[Region]) -> Handed:
        """Copy the inputs and the bytes around them, out of all caches; what to hand over."""
        self.forget()
        self.is_packed = True
        self.first = call.inputs_low // _PAGE * _PAGE
        size = -(-call.inputs_high // _PAGE) * _PAGE - self.first
        read = arena[self.first : self.first + size]
        moved = [Region(region.offset - self.first, region.nbytes) for region in regions]
        if call.is_pocketed:
            return self._pocketed(read, [region for region in moved if region.nbytes])
        self._file = os.memfd_create("kbench-inputs", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self._file, size)
        with mmap.mmap(self._file, size) as memory, memoryview(memory) as view:
            view[: len(read)] = read
            self._flusher.flush(view, moved)
        os.fchmod(self._file, 0o400)
        # Nobody can write to it any more, and only we can shrink it.
        fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, SEAL_FUTURE_WRITE | fcntl.F_SEAL_GROW)
        self._reader = os.open(f"/proc/self/fd/{self._file}", os.O_RDONLY)
        return Handed(self._reader)

    def _pocketed(self, read: memoryview, regions: Sequence[Region]) -> Handed:
        """Put noise around the places of the inputs, as in the arena; they are copied later."""
        surroundings = bytearray(read)
        for region in regions:
            surroundings[region.offset : region.end] = bytes(region.nbytes)
        self.pocket.view[: len(read)] = surroundings
        self._copy[: len(read)] = read
        return Handed(source=self._copy, place=self.pocket.view, regions=regions)

    def forget(self) -> None:
        """Take the memory back, even from a process that still has it mapped."""
        if self._file >= 0:
            os.ftruncate(self._file, 0)
            os.close(self._file)
        if self._reader >= 0:
            os.close(self._reader)
        self._file = self._reader = -1
        self.is_packed = False

    def close(self) -> None:
        """Give all memory back."""
        self.forget()
        self.pocket.close()
