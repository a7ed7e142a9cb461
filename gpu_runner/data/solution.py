"""A solution: the source of one kernel, as data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_runner.data.characters import bad_character
from gpu_runner.data.codec import LEFT_OUT, DataError
from gpu_runner.data.files import check_files
from gpu_runner.data.flags import source_flags
from gpu_runner.data.verdict import Direction, Language

SOURCE_LIMIT_BYTES = 1024 * 1024  # chosen: a hundred times the longest of the catalogue


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Source text of a kernel, its language, and the direction that it implements.

    source: of the entry, which is what is compiled or imported. files: texts of the files beside
    it, by name. entry: the entry's name; without other files, it's always the usual one.
    """

    source: str
    language: Language
    direction: Direction = Direction.FORWARD
    entry: str = field(default="", metadata=LEFT_OUT)
    files: Mapping[str, str] = field(default_factory=dict, metadata=LEFT_OUT)

    def __post_init__(self) -> None:
        """Refuse what no compiler should see; raises `DataError` on the field that is wrong."""
        if not self.source.strip():
            raise DataError("source", "is empty")
        if self.files:
            check_files(self.name, self.files, self.language)
        size = _size("source", "", self.source)
        size += sum(_size("files", f"{name!r} ", text) for name, text in self.files.items())
        if size > SOURCE_LIMIT_BYTES:
            where, what = ("files", "together have") if self.files else ("source", "has")
            raise DataError(where, f"{what} {size} bytes; the limit is {SOURCE_LIMIT_BYTES}")
        source_flags(self.source, self.language)

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler flags that the source asks for."""
        return source_flags(self.source, self.language)

    @property
    def name(self) -> str:
        return (self.entry if self.files else "") or f"kernel{self.language.suffix}"

    @property
    def texts(self) -> dict[str, str]:
        """All texts by name: the entry, and then the other files in alphabetical order."""
        return {self.name: self.source, **dict(sorted(self.files.items()))}

    @property
    def whole(self) -> str:
        """All texts as one, for a search or a comparison; each file begins with its name."""
        return whole(self.texts)

    @property
    def lines(self) -> int:
        """How many lines all texts have."""
        return sum(len(text.splitlines()) for text in self.texts.values())

    @property
    def code(self) -> str:
        """The entry with all that it may import, as one text; see `code_of`."""
        return code_of(self.source, self.files)

    def digest(self) -> str:
        """SHA-256 of language, direction and all texts with their names, as 64 hex digits."""
        parts = [self.language, self.direction, self.source]
        if self.files:
            parts += [self.name, *(part for item in sorted(self.files.items()) for part in item)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def whole(texts: Mapping[str, str]) -> str:
    """Texts as one, each after a line with its name; the only one as it is."""
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "".join(f"==> {name} <==\n{text.rstrip()}\n\n" for name, text in texts.items())


def code_of(source: str, files: Mapping[str, str]) -> str:
    """A source with the Python modules beside it, as one text that parses if they all do."""
    modules = (text for name, text in sorted(files.items()) if name.endswith(".py"))
    return "\n".join([source, *modules])


def _size(field: str, whose: str, text: str) -> int:
    if reason := bad_character(text):
        raise DataError(field, f"{whose}{reason}")
    return len(text.encode())
