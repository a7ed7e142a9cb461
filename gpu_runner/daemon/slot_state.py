"""What a slot works at, in memory that outlives a killed work-horse."""

from __future__ import annotations

import mmap
import struct

_LAYOUT = struct.Struct("<QIHBB")  # seq, attempt, length of the id, finished, 0
_ID_BYTES = 256


class SlotState:
    """Shared between the daemon, its slot and the slot's work-horse: made before the fork.

    The work-horse writes while it lives. The others write only when it is dead, so that an event
    about its death has a `seq` after its own last one.
    """

    def __init__(self) -> None:
        """Make the shared memory, empty."""
        self._memory = mmap.mmap(-1, _LAYOUT.size + _ID_BYTES)

    def begin(self, evaluation_id: str, attempt: int) -> None:
        """Note the evaluation, or the check of a task, that this slot starts with."""
        name = evaluation_id.encode()[:_ID_BYTES]
        self._memory[_LAYOUT.size : _LAYOUT.size + len(name)] = name
        _LAYOUT.pack_into(self._memory, 0, 0, attempt, len(name), 0, 0)

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
        seq, attempt, length, _, pad = _LAYOUT.unpack_from(self._memory)
        _LAYOUT.pack_into(self._memory, 0, seq, attempt, length, 1, pad)

    @property
    def evaluation_id(self) -> str:
        """The evaluation or check at work, or "" if the slot is idle."""
        length = _LAYOUT.unpack_from(self._memory)[2]
        return self._memory[_LAYOUT.size : _LAYOUT.size + length].decode(errors="replace")

    @property
    def attempt(self) -> int:
        """Attempt of the evaluation at work, or 0."""
        return int(_LAYOUT.unpack_from(self._memory)[1])

    @property
    def lost(self) -> bool:
        """Whether the end of the work-horse, now, would lose an evaluation."""
        _, _, length, finished, _ = _LAYOUT.unpack_from(self._memory)
        return bool(length) and not finished
