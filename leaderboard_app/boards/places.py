"""The order of a long board, packed: which evaluation has which rank; its rows are read anew."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload
from uuid import UUID

from leaderboard_app.boards.kept import kept

LONG = 2000
"""Rows from which on ordering a board takes longer than a page may."""
_PLACE = struct.Struct(">16sI?")


@dataclass(frozen=True)
class Place:
    """An evaluation's place on a board."""

    pk: UUID
    rank: int
    tied: bool


class Places(Sequence[Place]):
    """Places in their order, 21 bytes each."""

    def __init__(self, packed: bytes = b"") -> None:
        """Of what `pack` has made."""
        self.packed = packed

    @classmethod
    def pack(cls, places: Sequence[tuple[UUID, int, bool]]) -> Places:
        """Of evaluations with ranks and ties."""
        return cls(b"".join(_PLACE.pack(pk.bytes, rank, tied) for pk, rank, tied in places))

    def __len__(self) -> int:
        """How many there are."""
        return _rows(self.packed)

    @overload
    def __getitem__(self, index: int) -> Place: ...
    @overload
    def __getitem__(self, index: slice) -> list[Place]: ...
    def __getitem__(self, index: int | slice) -> Place | list[Place]:
        """One place, or those of a page; the others stay packed."""
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [self._at(number) for number in numbers]
        return self._at(numbers)

    def _at(self, number: int) -> Place:
        pk, rank, tied = _PLACE.unpack_from(self.packed, number * _PLACE.size)
        return Place(UUID(bytes=pk), rank, tied)


def kept_places(about: str, find: Callable[[], Places]) -> Places:
    """What is kept under these words, else what is found: that is kept if it is long."""
    name = f"places:{hashlib.sha256(about.encode()).hexdigest()}"
    return Places(kept(name, lambda: find().packed, worth=lambda packed: _rows(packed) >= LONG))


def _rows(packed: bytes) -> int:
    return len(packed) // _PLACE.size
