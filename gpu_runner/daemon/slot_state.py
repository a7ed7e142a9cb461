"""What a slot works at, in memory that outlives a killed work-horse."""

from __future__ import annotations

import mmap
import struct

from gpu_runner.data.order import JobName

_LAYOUT = struct.Struct("<QHB")  # seq, length of the name, finished
_NAME_BYTES = 256  # chosen: a job's name has at most 131
_DROPPED = _LAYOUT.size + _NAME_BYTES  # a byte of its own: the work-horse never writes it


class SlotState:
    """Shared between the daemon, its slot and the slot's work-horse: made before the fork.

    The work-horse writes while it lives. The others write only when it is dead, so that an event
    about its death has a `seq` after its own last one.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _DROPPED + 1)

    def begin(self, job: JobName) -> None:
        """Note the job that this slot starts with."""
        self._memory[_DROPPED] = 0
        name = str(job).encode()
        self._memory[_LAYOUT.size : _LAYOUT.size + len(name)] = name
        _LAYOUT.pack_into(self._memory, 0, 0, len(name), 0)

    def clear(self) -> None:
        """Note that this slot is idle."""
        _LAYOUT.pack_into(self._memory, 0, 0, 0, 0)

    def next_seq(self) -> int:
        """Count up and return the number of the next event."""
        seq, *rest = _LAYOUT.unpack_from(self._memory)
        _LAYOUT.pack_into(self._memory, 0, seq + 1, *rest)
        return int(seq) + 1

    def finish(self) -> None:
        """Note that the result is safe: the end of the work-horse is no loss any more."""
        seq, length, _ = _LAYOUT.unpack_from(self._memory)
        _LAYOUT.pack_into(self._memory, 0, seq, length, 1)

    def drop(self) -> None:
        """The site has taken the job back: its slot ends it."""
        self._memory[_DROPPED] = 1

    @property
    def dropped(self) -> bool:
        """Whether the job is to be ended, as it is no longer this runner's."""
        return bool(self._memory[_DROPPED])

    @property
    def name(self) -> str:
        """Of the job at work, as `JobName` writes it; "" if the slot is idle."""
        length = _LAYOUT.unpack_from(self._memory)[1]
        return self._memory[_LAYOUT.size : _LAYOUT.size + length].decode()

    @property
    def lost(self) -> bool:
        """Whether the end of the work-horse, now, would lose a job."""
        _, length, finished = _LAYOUT.unpack_from(self._memory)
        return bool(length) and not finished
