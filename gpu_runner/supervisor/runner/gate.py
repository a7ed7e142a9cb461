"""The gate that a timed call on a CPU passes, as the supervisor watches it."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import Any

from gpu_runner.data import wire
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.supervisor.host.arena import Arena

PAGE_BYTES = 4096  # of Linux on x86-64; the gate needs a part of it
LOOKS, LOOKS_EACH = 32, 2
"""Bytes of the outputs that are read at once when a call says that it is over, and how many of them
at least in each."""

_WRITTEN = (ArgumentKind.OUTPUT, ArgumentKind.INOUT)


class Gate:
    """A page shared with the runner (`native/gate.h`), and what was seen of the last call."""

    def __init__(self, support: Path, outputs: Arena) -> None:
        """`support` is the library with `kb_gate_watch`; raises `OSError` if it is not there.

        `outputs` is the arena that calls write to; it may get its size later.
        """
        self._watch = ctypes.CDLL(str(support)).kb_gate_watch
        self._outputs = outputs
        self._page = Arena("gate")
        self._page.resize(PAGE_BYTES)
        self._page.seal_size()
        self._rng = random.SystemRandom()  # where it looks must not be foreseen
        self._places: list[int] = []
        self._seen = b""
        self._opened_ns = self._over_ns = 0
        self._asked: tuple[Any, ...] = ()
        self._call = ctypes.c_uint64(0)
        self.is_passed = False  # whether the last call began and was over here

    @property
    def page(self) -> Arena:
        """What a runner inherits."""
        return self._page

    def forget(self) -> None:
        """Leave nothing of one process to the next."""
        self._page.forget()

    def prepare(self, call: wire.Call) -> None:
        """Draw where to look when this call is over: nothing is left to do once it may run."""
        written = [a for a in call.arguments if a.kind in _WRITTEN and a.nbytes > 0]
        chosen = LOOKS_EACH * written
        if rest := max(LOOKS - len(chosen), 0) * bool(written):
            chosen += self._rng.choices(written, [argument.nbytes for argument in written], k=rest)
        self._places = [a.output_offset + self._rng.randrange(a.nbytes) for a in chosen]
        self._asked = (
            ctypes.c_void_p(_address(self._outputs.view)),
            (ctypes.c_uint64 * len(chosen))(*self._places),
            ctypes.c_size_t(len(chosen)),
        )
        self._call = ctypes.c_uint64(call.call_id)

    def watch(self, control: int, longest_s: float) -> None:
        """Open for the call, which has just been released, and wait until it is over.

        Or until the process has something to say on the descriptor `control`, or for `longest_s`.
        """
        seen, times = (ctypes.c_ubyte * len(self._places))(), (ctypes.c_uint64 * 2)()
        over = self._watch(
            ctypes.c_void_p(_address(self._page.view)),
            self._call,
            ctypes.c_int(control),
            ctypes.c_uint64(int(longest_s * 1e9)),
            *self._asked,
            seen,
            times,
        )
        self.is_passed = bool(over)
        self._opened_ns, self._over_ns = times
        self._seen = bytes(seen)

    @property
    def time_ns(self) -> float:
        """Time of the last call in ns."""
        return float(self._over_ns - self._opened_ns)

    def is_final(self) -> bool:
        """Whether the outputs, now that the process stands still, are what the call left there."""
        return bytes(self._outputs.view[place] for place in self._places) == self._seen

    def close(self) -> None:
        """Give the page back."""
        self._page.close()


def _address(view: memoryview) -> int:
    first = ctypes.c_char.from_buffer(view)
    return ctypes.addressof(first)  # the mapping could not be closed while `first` exists
