"""The gate that calls of a torch runner on a CPU pass, from the runner's side."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path


class Gate:
    """A page shared with the coordinator (`native/gate.h`); without one, nothing is waited for."""

    def __init__(self, descriptor: int = -1, support: Path | None = None) -> None:
        """`support` is the library with the gate's functions; raises `OSError` without it."""
        self._call = 0  # no call has this number
        self._page: mmap.mmap | None = None
        if descriptor >= 0:
            library = ctypes.CDLL(str(support))
            self._enter, self._leave = library.kb_gate_enter, library.kb_gate_leave
            self._page = mmap.mmap(descriptor, 0)
            self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._page))

    def expect(self, call: int) -> None:
        """The next call that is timed has this number, and passes."""
        if self._page is not None:
            self._call = call

    def enter(self) -> None:
        """Wait to be let begin, if a call is expected."""
        if self._call != 0:
            self._enter(ctypes.c_void_p(self._address), ctypes.c_uint64(self._call))

    def leave(self) -> None:
        """Say that the call is over, and its outputs are where they belong."""
        if self._call != 0:
            self._leave(ctypes.c_void_p(self._address), ctypes.c_uint64(self._call))
            self._call = 0
