"""What a static rule is given, and what it finds."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi

Read = TypeVar("Read")

_PART = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<string>(?:u8|[uUL])?R"(?P<end>[^()\\\s"]{0,16})\(.*?(?:\)(?P=end)"|\Z)
        |"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    | [A-Za-z_$][\w$]*
    | \.?[0-9](?:[eEpP][+-]|'?[\w.])*
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"(?<![\w$.])(?<!->)[A-Za-z_$][\w$]*")
_KEPT = '"cuTensorMap'  # the one string that tells an honest call from another


@dataclass(frozen=True)
class Finding:
    """A line of the source, from 1, and one sentence about it; `subject` tells findings apart.

    file: in which the line stands, if not in the entry.
    """

    subject: str
    line: int
    sentence: str
    file: str = ""


@dataclass(frozen=True)
class Code:
    """C++ or CUDA as one pass of the compiler reads it: a text after its macros.

    runs: where its lines come from: from a line on, those of a file (empty: of the entry) that
    begin with a line of that file. Without any, the text is the entry.
    """

    text: str
    runs: tuple[tuple[int, str, int], ...] = ()

    @classmethod
    def joined(cls, texts: Mapping[str, str]) -> Code:
        """The files of a submission as they were written, one after another; the entry first."""
        lines: list[str] = []
        runs = []
        for index, (name, text) in enumerate(texts.items()):
            runs.append((len(lines) + 1, name if index else "", 1))
            lines += [*text.split("\n"), ""]  # where a last line ends in a backslash
        return cls("\n".join(lines), tuple(runs))

    def place(self, at: int) -> tuple[str, int]:
        """The file, and the line in it, that a place of the text comes from."""
        line = self.text.count("\n", 0, at) + 1
        index = bisect_right(self.runs, line, key=lambda run: run[0]) - 1
        if index < 0:
            return "", line
        first, file, begins = self.runs[index]
        return file, line - first + begins

    @cached_property
    def plain(self) -> str:
        """The text with blanks for comments and for what stands in strings."""
        return _PART.sub(_blanked, self.text)

    @cached_property
    def words(self) -> dict[str, int]:
        """Each word that isn't a member's name, with its first place."""
        found: dict[str, int] = {}
        for match in _WORD.finditer(self.plain):
            found.setdefault(match[0], match.start())
        return found

    def strings(self, start: int, end: int) -> list[str]:
        """The strings between two places, as they are spelled."""
        parts = _PART.finditer(self.text, start, end)
        return [match["string"] for match in parts if match["string"]]

    def finding(self, subject: str, at: int, sentence: str) -> Finding:
        file, line = self.place(at)
        return Finding(subject, line, sentence, file)


def _blanked(match: re.Match[str]) -> str:
    if match.lastgroup is None or match[0].startswith(_KEPT):
        return match[0]
    return re.sub(r"[^\n]", " ", match[0])


@dataclass(frozen=True)
class Case:
    """A source as it was written, and its code once for each pass of the compiler.

    files: names of the files beside it, which it may include.
    """

    source: Code
    passes: tuple[Code, ...]
    abi: Abi
    task: Task
    files: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rule(Generic[Read]):
    """A static rule: its name, what it looks for, and the search itself.

    Admins read the sentences of its findings. `looks_for` is for whoever reads the code, and
    docs/static-checks.md has a line of its own for each rule. `Read` is what the search is given: a
    `Case`, or a `ModuleCase`.
    """

    name: str
    looks_for: str
    find: Callable[[Read], Iterable[Finding]]
