"""A solution: the source of one kernel, as data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from gpu_runner.data.codec import DataError
from gpu_runner.data.flags import source_flags
from gpu_runner.data.verdict import Direction, Language

SOURCE_LIMIT_BYTES = 1024 * 1024  # chosen: a hundred times the longest of the catalogue


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Source text of a kernel, its language, and the direction that it implements."""

    source: str
    language: Language
    direction: Direction = Direction.FORWARD

    def __post_init__(self) -> None:
        """Refuse what no compiler should see; raises `DataError` on the field `source`."""
        if not self.source.strip():
            raise DataError("source", "is empty")
        size = len(self.source.encode())
        if size > SOURCE_LIMIT_BYTES:
            raise DataError("source", f"has {size} bytes; the limit is {SOURCE_LIMIT_BYTES}")
        if "\0" in self.source:
            raise DataError("source", "contains a NUL character: is it a binary file?")
        source_flags(self.source, self.language)

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler flags that the source asks for."""
        return source_flags(self.source, self.language)

    def digest(self) -> str:
        """SHA-256 of language, direction and source, as 64 hex digits."""
        text = "\0".join((self.language, self.direction, self.source))
        return hashlib.sha256(text.encode()).hexdigest()
