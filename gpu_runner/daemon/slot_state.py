"""What a slot works at, in memory that outlives a killed work-horse."""

from __future__ import annotations

import mmap
import struct

from gpu_runner.data.event import JobKind

_LAYOUT = struct.Struct("<QIHBB")  # seq, attempt, length of the id, finished, place of the kind
_KINDS = tuple(JobKind)
_ID_BYTES = 256  # chosen: an id has 36


class SlotState:
    """Shared between the daemon, its slot and the slot's work-horse: made before the fork.

    The work-horse writes while it lives. The others write only when it is dead, so that an event
    about its death has a `seq` after its own last one.
    """

    def __init__(self) -> None:
        """Make the shared memory, empty."""
        self._memory = mmap.mmap(-1, _LAYOUT.size + _ID_BYTES)

    def begin(self, job: JobKind, job_id: str, attempt: int) -> None:
        """Note the job that this slot starts with."""
        name = job_id.encode()[:_ID_BYTES]
        self._memory[_LAYOUT.size : _LAYOUT.size + len(name)] = name
        _LAYOUT.pack_into(self._memory, 0, 0, attempt, len(name), 0, _KINDS.index(job))

    def clear(self) -> None:
        """Note that this slot is idle."""
        _LAYOUT.pack_into(self._memory, 0, 0, 0, 0, 0, 0)

    def next_seq(self) -> int:
        """Count up and return the number of the next event."""
        seq, *rest = _LAYOUT.unpack_from(self._memory)
        _LAYOUT.pack_into(self._memory, 0, seq + 1, *rest)
        return int(seq) + 1

    def finish(self) -> None:
        """Note that the result is safe: the end of the work-horse is no loss any more."""
        seq, attempt, length, _, kind = _LAYOUT.unpack_from(self._memory)
        _LAYOUT.pack_into(self._memory, 0, seq, attempt, length, 1, kind)

    @property
    def job(self) -> JobKind:
        """The kind of the job at work; says nothing if the slot is idle."""
        return _KINDS[int(_LAYOUT.unpack_from(self._memory)[4])]

    @property
    def job_id(self) -> str:
        """Id of the job at work, or "" if the slot is idle."""
        length = _LAYOUT.unpack_from(self._memory)[2]
        return self._memory[_LAYOUT.size : _LAYOUT.size + length].decode(errors="replace")

    @property
    def attempt(self) -> int:
        """Attempt of the job at work, or 0."""
        return int(_LAYOUT.unpack_from(self._memory)[1])

    @property
    def lost(self) -> bool:
        """Whether the end of the work-horse, now, would lose a job."""
        _, _, length, finished, _ = _LAYOUT.unpack_from(self._memory)
        return bool(length) and not finished
