"""The gate that calls pass, as the supervisor watches it."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpu_runner.data import wire
from gpu_runner.data.verdict import Verdict
from gpu_runner.data.wire import MAX_OUTPUTS, ArgumentKind
from gpu_runner.supervisor.host.arena import Arena, Region
from gpu_runner.supervisor.host.killed import is_dead
from gpu_runner.supervisor.runner.faults import Fault, FaultError, RunnerUnfit

PAGE_BYTES = 4096  # of Linux on x86-64; the gate needs a part of it
LOOKS, LOOKS_EACH = 32, 2
"""Bytes of the outputs that are read at once when a call says that it is over, and how many of them
at least in each; of 64 outputs 128 at most (`kKbMostLooks`)."""

UNSEEN_SHARE = 0.1  # chosen: like `GATE_SHARE`, the error that the clock has anyway
_FIRST = 2  # chosen: what they miss in one call, they do not miss in many
_ADDRESSES = 256  # offset of `KbGate.outputs`
_HEADLESS = "ended its main thread while others kept running"
_WRITTEN = (ArgumentKind.OUTPUT, ArgumentKind.INOUT)
_Bytes = ctypes.Array[ctypes.c_ubyte]


class _Looks(ctypes.Structure):
    """`KbLooks`."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("pid", ctypes.c_int64),
        ("count", ctypes.c_size_t),
        ("places", ctypes.POINTER(ctypes.c_uint64)),
        ("bytes", ctypes.POINTER(ctypes.c_ubyte)),
        ("pages", ctypes.c_int64),
        ("first", ctypes.c_size_t),
        ("shared", ctypes.POINTER(ctypes.c_ubyte)),
    )


@dataclass(frozen=True)
class Handed:
    """What the torch runner gets when its call begins.

    descriptor: of the memory that holds its inputs, or -1. regions: the bytes that are copied from
    `source` to `place`, which is memory that the runner has mapped, too.
    """

    descriptor: int = -1
    source: memoryview = field(default_factory=lambda: memoryview(b""))
    place: memoryview = field(default_factory=lambda: memoryview(b""))
    regions: Sequence[Region] = ()


NOTHING = Handed()


class _Handed(ctypes.Structure):
    """`KbHanded`."""

    _fields_ = (
        ("handles", ctypes.c_int64),
        ("descriptor", ctypes.c_int64),
        ("source", ctypes.c_void_p),
        ("place", ctypes.c_void_p),
        ("ranges", ctypes.POINTER(ctypes.c_uint64)),
        ("count", ctypes.c_size_t),
    )

    @classmethod
    def of(cls, handed: Handed, handles: int) -> _Handed:
        """handles: the socket through which the runner gets the descriptor."""
        words = [word for region in handed.regions for word in (region.offset, region.end)]
        return cls(
            handles,
            handed.descriptor,
            _address(handed.source),
            _address(handed.place),
            (ctypes.c_uint64 * len(words))(*words),
            len(handed.regions),
        )


class Gate:
    """A page shared with the runner (`native/gate.h`), and what was seen of the last call."""

    def __init__(self, support: Path, outputs: Arena | None = None) -> None:
        """`support` is the library with `kb_gate_watch`; raises `OSError` if it is not there.

        `outputs` is the arena that calls of the c ABI write to on a CPU; it may get its size later.
        """
        library = ctypes.CDLL(str(support))
        self._watch, self._reached = library.kb_gate_watch, library.kb_gate_reached
        self._open, self._look = library.kb_gate_open_after, library.kb_gate_look
        self._look.restype = self._open.restype = None
        self._outputs = outputs
        self._page = Arena("gate")
        self._page.resize(PAGE_BYTES)
        self._page.seal_size()
        self._rng = random.SystemRandom()  # where it looks must not be foreseen
        self._pid, self._pages = 0, -1
        self._places = (ctypes.c_uint64 * 0)()
        self._count = 0
        self._first = 0
        self._anew: list[int] = []  # numbers of the looks at outputs that are not inputs as well
        self._seen, self._shared = b"", b""
        self._opened_ns = self._over_ns = self._unseen_ns = 0
        self._call = ctypes.c_uint64(0)
        self.is_passed = False  # whether the last call began and was over here

    @property
    def page(self) -> Arena:
        """What a runner inherits."""
        return self._page

    def forget(self) -> None:
        """Leave nothing of one process to the next."""
        self._open_pages(0)
        self._page.forget()

    def is_reached(self, number: int, control: int, longest_s: float) -> bool:
        """Wait until the runner stands here with this call or burst; other words as of `watch`."""
        longest = ctypes.c_uint64(int(longest_s * 1e9))
        told = ctypes.c_uint64(number), ctypes.c_int(control), longest
        return bool(self._reached(self._here(), *told))

    def open(
        self,
        number: int,
        control: int,
        longest_s: float,
        rounds: int = 0,
        handed: Handed = NOTHING,
        handles: int = -1,
    ) -> None:
        """Let a call or a burst begin, without watching it; the rest is as in `watch`."""
        self._open(
            self._here(),
            ctypes.c_uint64(number),
            ctypes.c_uint64(rounds),
            ctypes.c_int(control),
            ctypes.byref(_Handed.of(handed, handles)),
            ctypes.c_uint64(int(longest_s * 1e9)),
        )

    def prepare(self, call: wire.Call, pid: int = 0) -> None:
        """Draw where to look when this call is over: nothing is left to do once it may run.

        pid: of the process that leaves its outputs in memory of its own.
        """
        written = [a for a in call.arguments if a.kind in _WRITTEN]
        sizes = {index: a.nbytes for index, a in enumerate(written) if a.nbytes > 0}
        chosen = LOOKS_EACH * list(sizes)
        if rest := max(LOOKS - len(chosen), 0) * bool(sizes):
            chosen += self._rng.choices(list(sizes), list(sizes.values()), k=rest)
        drawn = [(index, self._rng.randrange(sizes[index])) for index in chosen]
        kinds = [written[index].kind for index, _ in drawn]
        self._anew = [n for n, kind in enumerate(kinds) if kind is ArgumentKind.OUTPUT]
        self._first = max(len(sizes), _FIRST)  # one look at each output, and maybe another
        self._open_pages(pid)
        if pid:
            places = [word for pair in drawn for word in pair]
        else:
            places = [written[index].output_offset + at for index, at in drawn]
        self._count = len(drawn)
        self._places = (ctypes.c_uint64 * len(places))(*places)
        self._call = ctypes.c_uint64(call.call_id)

    def watch(
        self,
        control: int,
        longest_s: float,
        rounds: int = 0,
        handed: Handed = NOTHING,
        handles: int = -1,
    ) -> None:
        """Open for the call, which has just been released, and wait until it is over.

        Stops waiting if the process says something on the descriptor `control`, or after
        `longest_s`. rounds: how often the torch runner, which is already at the gate, looks again
        before it opens. handles: the socket through which the runner gets a descriptor.
        """
        looks, seen, shared = self._looks()
        times = (ctypes.c_uint64 * 3)()
        over = self._watch(
            self._here(),
            self._call,
            ctypes.c_uint64(rounds),
            ctypes.c_int(control),
            ctypes.byref(_Handed.of(handed, handles)),
            ctypes.c_uint64(int(longest_s * 1e9)),
            ctypes.byref(looks),
            times,
        )
        self.is_passed = bool(over)
        self._opened_ns, self._over_ns, self._unseen_ns = times
        self._seen, self._shared = bytes(seen), bytes(shared)

    @property
    def is_shared(self) -> bool:
        """Whether an output, other than an inout one, was in memory of a file after the call.

        The inputs are in such memory. A process that returns an input could replace it with a copy
        before we look up whose memory it is, so we ask right when the call is over.
        """
        # A huge page of zeros that nobody has written to is the kernel's own, and looks like that.
        return any(self._shared[number] and self._seen[number] for number in self._anew)

    @property
    def time_ns(self) -> float:
        """Time of the last call in ns: a little too long if we weren't looking when it ended.

        We subtract the time since our last look only if it is a small part of the call. On a busy
        host, long calls would seem short otherwise. Those that seem too long don't matter: the
        fastest calls count.
        """
        seen_ns, unseen_ns = self._over_ns - self._opened_ns, self._unseen_ns
        return float(seen_ns - unseen_ns if unseen_ns <= UNSEEN_SHARE * seen_ns else seen_ns)

    def is_final(self) -> bool:
        """Whether the outputs, now that the process is stopped, are what the call left there."""
        looks, seen, _ = self._looks()
        self._look(self._here(), ctypes.byref(looks))
        return bytes(seen) == self._seen

    def told(self, count: int) -> Sequence[int]:
        """Where the first `count` outputs are, as the process said before the call was over."""
        end = _ADDRESSES + 8 * min(count, MAX_OUTPUTS)
        return self._page.view[_ADDRESSES:end].cast("Q").tolist()

    def close(self) -> None:
        """Give the page back."""
        self._open_pages(0)
        self._page.close()

    def _open_pages(self, pid: int) -> None:
        """Open the file that says what kind of memory this process has; 0 only closes the last."""
        if pid == self._pid:
            return
        if self._pages >= 0:
            os.close(self._pages)
        self._pid, self._pages = pid, -1
        if not pid:
            return
        try:
            self._pages = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        except ProcessLookupError:  # its first thread is gone
            if not is_dead(pid):  # else the process has died, which is reported elsewhere
                raise FaultError(Fault(Verdict.VIOLATION, _HEADLESS)) from None
        except OSError as error:
            if os.path.exists(f"/proc/{pid}"):
                reason = "this host does not let the supervisor read /proc/PID/pagemap"
                raise RunnerUnfit(f"{reason} ({error}); Python kernels need it") from None

    def _looks(self) -> tuple[_Looks, _Bytes, _Bytes]:
        seen, shared = (ctypes.c_ubyte * self._count)(), (ctypes.c_ubyte * self._count)()
        base = 0 if self._pid or self._outputs is None else _address(self._outputs.view)
        told = base, self._pid, self._count, self._places, seen, self._pages, self._first, shared
        return _Looks(*told), seen, shared

    def _here(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(_address(self._page.view))


def _address(view: memoryview) -> int:
    if not view:
        return 0
    first = ctypes.c_char.from_buffer(view)
    return ctypes.addressof(first)  # the mapping could not be closed while `first` exists
