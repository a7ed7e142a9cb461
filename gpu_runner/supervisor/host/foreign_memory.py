"""Reads tensors in the memory of another process, which stands still meanwhile."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.maps import mappings
from gpu_runner.supervisor.host.proc import descendants
from gpu_runner.supervisor.host.process import ChildProcess

_START_S = 10.0  # chosen: a jail starts in some milliseconds


class Unreadable(Exception):
    """There is no such memory in the process."""


class NotAllowed(Exception):
    """This host does not let one process read another's memory."""


@dataclass(frozen=True)
class Span:
    """Addresses [low, high) of a process."""

    low: int
    high: int

    def overlaps(self, other: Span) -> bool:
        """Whether some byte belongs to both."""
        return self.low < other.high and other.low < self.high


def span_of(address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Span:
    """The addresses of a tensor, strides in elements; empty where it has no elements."""
    if 0 in shape:
        return Span(address, address)
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return Span(address, address + (last + 1) * itemsize)


def mapped_at(pid: int, descriptor: int) -> list[tuple[Span, int]]:
    """Where a process has mapped the file of our `descriptor`, with the offset in that file.

    Raises `NotAllowed` where that cannot be seen.
    """
    file = os.fstat(descriptor)
    device = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}"
    try:
        found = mappings(pid)
    except PermissionError as error:
        raise NotAllowed(str(error)) from None
    return [
        (Span(m.low, m.high), m.offset)
        for m in found
        if (m.inode, m.device) == (file.st_ino, device)
    ]


def probe() -> str:
    """Empty if this host lets us read the memory of what runs in a jail, else why not."""
    limits = Limits(cpu_s=10, memory_bytes=1 << 28, processes=64)
    with ChildProcess(Jail(limits=limits), ["/bin/sleep", "20"], jailed=True) as child:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            for pid in descendants(child.pid):
                with contextlib.suppress(OSError):
                    if Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
                        return _try(pid)
            time.sleep(0.01)
    return "the process for testing this didn't start"


def _try(pid: int) -> str:
    try:
        code = next(each for each in mappings(pid) if each.is_code)
    except (OSError, StopIteration) as error:
        return f"a process's mappings can't be read: {error}"
    here = ctypes.create_string_buffer(8)
    libc = ctypes.CDLL(None, use_errno=True)
    ranges = [(ctypes.c_void_p * 2)(at, 8) for at in (ctypes.addressof(here), code.low)]
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    got = libc.process_vm_readv(ctypes.c_int(pid), ranges[0], one, ranges[1], one, none)
    if got != len(here):
        return f"process_vm_readv: {os.strerror(ctypes.get_errno())}"
    try:
        with open(f"/proc/{pid}/pagemap", "rb") as pages:
            return "" if pages.read(8) else "/proc/PID/pagemap is empty"
    except OSError as error:
        return f"/proc/PID/pagemap: {error.strerror}"


class ForeignMemory:
    """Copies tensors by process_vm_readv(2)."""

    def __init__(self, support: Path) -> None:
        """`support` is the library with `kb_read_tensor`; raises `OSError` without it."""
        self._read = ctypes.CDLL(str(support)).kb_read_tensor

    def read(
        self, pid: int, address: int, shape: Sequence[int], strides: Sequence[int], into: memoryview
    ) -> None:
        """Fill `into` with the dense bytes of a tensor; its size is the elements' times theirs.

        Raises `Unreadable` or `NotAllowed`.
        """
        if not len(into):
            return
        count = 1
        for size in shape:
            count *= size
        words = ctypes.c_int64 * len(shape)
        status = self._read(
            ctypes.c_int(pid),
            ctypes.c_uint64(address),
            ctypes.c_int(len(shape)),
            words(*shape),
            words(*strides),
            ctypes.c_size_t(len(into) // count),
            ctypes.byref(ctypes.c_char.from_buffer(into)),
        )
        if status in (errno.EPERM, errno.ENOSYS):
            raise NotAllowed(os.strerror(status))
        if status != 0:
            raise Unreadable(os.strerror(status))
