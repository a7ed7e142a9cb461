"""Differences between two texts by lines, within bounds of time and size."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from difflib import Match, SequenceMatcher

_CONTEXT = 3
_MOST_LINES = 2000  # of a file's changed part; more would take difflib too long
_NO_BREAK = "\n\\ No newline at end of file"
_SIGNS = {"add": "+", "remove": "−", "same": " ", "place": ""}

Opcode = tuple[str, int, int, int, int]


class OutOfTimeError(Exception):
    """The comparison took longer than its page may take."""


@dataclass(frozen=True)
class Line:
    """A line of a unified diff; `kind` is add, remove, same, or place for what is left out."""

    kind: str
    text: str

    @property
    def sign(self) -> str:
        """What stands before the line."""
        return _SIGNS[self.kind]

    @property
    def shown(self) -> str:
        """The text with a sign for each carriage return, which no browser shows."""
        return self.text.replace("\r", "␍")


@dataclass(frozen=True, kw_only=True)
class TextDiff:
    """What was added to and removed from a text, in lines.

    `lines` is None if it is too large to show: then the numbers are those of the whole part
    between the first change and the last.
    """

    added: int
    removed: int
    lines: tuple[Line, ...] | None

    @property
    def unified(self) -> str | None:
        """The hunks as a program would write them."""
        if self.lines is None:
            return None
        signs = {"add": "+", "remove": "-", "same": " ", "place": ""}
        return "".join(f"{signs[line.kind]}{line.text}\n" for line in self.lines)


@dataclass
class Budget:
    """What the differences of one page may take and fill together."""

    seconds: float = 1.5
    lines: int = 8000
    characters: int = 512 * 1024
    _deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.seconds

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self._deadline

    def pays_for(self, lines: list[Line]) -> bool:
        """Whether these lines still have room; if so it is taken."""
        characters = sum(len(line.text) for line in lines)
        if len(lines) > self.lines or characters > self.characters:
            return False
        self.lines -= len(lines)
        self.characters -= characters
        return True


class _Matcher(SequenceMatcher[str]):
    """A matcher that gives up: some texts take difflib time that grows with their square."""

    def __init__(self, before: list[str], after: list[str], budget: Budget) -> None:
        self._budget = budget
        super().__init__(None, before, after)

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        """As difflib's; raises `OutOfTimeError` once the budget's time is over."""
        if self._budget.is_late:
            raise OutOfTimeError
        return super().find_longest_match(alo, ahi, blo, bhi)


def diff(before: str, after: str, budget: Budget) -> TextDiff:
    """The unified diff of two texts with three lines of context."""
    old, new = _lines(before), _lines(after)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    removed, added = len(old) - start - end, len(new) - start - end
    whole = TextDiff(added=added, removed=removed, lines=None)
    if max(removed, added) > _MOST_LINES:
        return whole
    first, spare = max(start - _CONTEXT, 0), max(end - _CONTEXT, 0)
    sides = old[first : len(old) - spare], new[first : len(new) - spare]
    try:
        groups = _groups(*sides, budget)
    except OutOfTimeError:
        return whole
    lines = _shown(groups, *sides, first)
    if not budget.pays_for(lines):
        return whole
    kinds = [line.kind for line in lines]
    return TextDiff(added=kinds.count("add"), removed=kinds.count("remove"), lines=tuple(lines))


def _groups(old: list[str], new: list[str], budget: Budget) -> list[list[Opcode]]:
    if not old or not new:
        return [[("replace", 0, len(old), 0, len(new))]] if old or new else []
    return [list(group) for group in _Matcher(old, new, budget).get_grouped_opcodes(_CONTEXT)]


def _shown(groups: list[list[Opcode]], old: list[str], new: list[str], offset: int) -> list[Line]:
    lines: list[Line] = []
    seen = -offset  # how far the older text has been shown or counted as left out
    for group in groups:
        top, bottom, left, right = group[0][1], group[-1][2], group[0][3], group[-1][4]
        lines.append(_place(offset, (top, bottom, left, right), top - seen))
        seen = bottom
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [Line("same", text) for text in old[i1:i2]]
            else:
                lines += [Line("remove", text) for text in old[i1:i2]]
                lines += [Line("add", text) for text in new[j1:j2]]
    return lines


def _place(offset: int, span: tuple[int, int, int, int], left_out: int) -> Line:
    top, bottom, left, right = span
    note = f" {left_out} unchanged line{'' if left_out == 1 else 's'} left out" if left_out else ""
    ranges = f"-{_range(offset, top, bottom)} +{_range(offset, left, right)}"
    return Line("place", f"@@ {ranges} @@{note}")


def _range(offset: int, begin: int, end: int) -> str:
    """A range as unified diffs have it: an empty one begins at the line before it."""
    first = offset + begin + (1 if end > begin else 0)
    return f"{first},{end - begin}"


def _lines(text: str) -> list[str]:
    """Lines without their breaks; a last one that has none says so, and so equals no other."""
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, last + _NO_BREAK] if last else lines


def _common(left: list[str], right: list[str]) -> int:
    """Number of lines at the beginning that both have."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
