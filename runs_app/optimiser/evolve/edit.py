"""Applies a language model's edits to a source: SEARCH/REPLACE blocks, or a unified diff."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_BLOCKS = 64

_SEARCH = re.compile(r"^\s*<{5,}\s*(?:SEARCH|ORIGINAL|HEAD)?\s*$")
_MIDDLE = re.compile(r"^\s*={5,}\s*$")
_REPLACE = re.compile(r"^\s*>{5,}\s*(?:REPLACE|UPDATED|REPLACEMENT)?\s*$")
_HUNK = re.compile(r"^@@(?:\s*-(?P<line>\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?\s*@@.*|.*)$")
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})")
_FILE_LINE = re.compile(r"^(?:--- |\+\+\+ |diff |index )")


class EditError(ValueError):
    """An edit does not fit its source; the message names each block and what is wrong with it."""


@dataclass(frozen=True)
class Change:
    """Lines to find and lines to put there; `at` is the line that a diff states, from 1."""

    search: tuple[str, ...]
    replace: tuple[str, ...]
    at: int | None = None


def has_edits(text: str) -> bool:
    """Whether an answer has SEARCH/REPLACE blocks or hunks of a unified diff."""
    return any(_SEARCH.match(line) or _HUNK.match(line) for line in text.splitlines())


def apply_edits(source: str, text: str) -> str:
    """The source with all edits of an answer made, in order: all of them or none.

    A block must match exactly once, character for character; failing that, exactly once when the
    space at both ends of lines and between words is not counted. Lines that an earlier block wrote
    are looked at where none of the source's own match. Raises `EditError`.
    """
    changes = _changes(text)
    lines = [_Line(line) for line in source.splitlines()]
    problems = []
    for number, change in enumerate(changes, start=1):
        try:
            lines = _applied(lines, change)
        except EditError as error:
            problems.append(f"block {number} of {len(changes)}: {error}")
    if problems:
        raise EditError("; ".join(problems))
    edited = "\n".join(line.text for line in lines) + "\n"
    if edited.strip() == source.strip():
        raise EditError("the blocks change nothing")
    return edited


def _changes(text: str) -> list[Change]:
    lines = text.splitlines()
    blocks = any(_SEARCH.match(line) for line in lines)
    changes = list(_search_blocks(lines) if blocks else _hunks(lines))
    if not changes:
        raise EditError("the answer has neither SEARCH/REPLACE blocks nor a unified diff")
    if len(changes) > MAX_BLOCKS:
        raise EditError(f"the answer has {len(changes)} blocks; {MAX_BLOCKS} are allowed")
    return changes


def _search_blocks(lines: list[str]) -> Iterator[Change]:
    """Blocks `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`; a torn one is an error."""
    start = _next(lines, _SEARCH, 0)
    while start < len(lines):
        middle = _next(lines, _MIDDLE, start)
        end = _next(lines, _REPLACE, middle)
        following = _next(lines, _SEARCH, start + 1)
        if end == len(lines) or following < end:
            lacks = "=======" if middle > min(following, len(lines) - 1) else ">>>>>>> REPLACE"
            raise EditError(f"the block at line {start + 1} of the answer has no line {lacks!r}")
        yield Change(tuple(lines[start + 1 : middle]), tuple(lines[middle + 1 : end]))
        start = following


def _next(lines: list[str], mark: re.Pattern[str], start: int) -> int:
    """Where the next line with that mark is; behind the last line if there is none."""
    return next((at for at in range(start, len(lines)) if mark.match(lines[at])), len(lines))


def _hunks(lines: list[str]) -> Iterator[Change]:
    """Hunks of a unified diff; their line numbers only decide between several matches."""
    search: list[str] = []
    replace: list[str] = []
    at: int | None = None
    inside = False
    for line in [*lines, "```"]:
        hunk = _HUNK.match(line)
        if hunk or _FENCE.match(line) or _FILE_LINE.match(line):
            if inside:
                yield _hunk(search, replace, at)
            search, replace, inside = [], [], hunk is not None
            at = int(hunk["line"]) if hunk and hunk["line"] else None
        elif inside and (not line or line[0] in " +-"):
            if line[:1] != "+":
                search.append(line[1:])
            if line[:1] != "-":
                replace.append(line[1:])
        elif inside and not line.startswith("\\"):  # "\ No newline at end of file"
            yield _hunk(search, replace, at)
            search, replace, inside = [], [], False


def _hunk(search: list[str], replace: list[str], at: int | None) -> Change:
    """A hunk without the empty lines that an answer puts behind it."""
    while search and replace and not search[-1].strip() and not replace[-1].strip():
        search, replace = search[:-1], replace[:-1]
    return Change(tuple(search), tuple(replace), at)


@dataclass(frozen=True)
class _Line:
    """A line of the kernel; is_own: the source had it, and no block wrote it."""

    text: str
    is_own: bool = True


def _applied(kernel: list[_Line], change: Change) -> list[_Line]:
    size, lines = len(change.search), [line.text for line in kernel]
    if not any(line.strip() for line in change.search):
        raise EditError("its SEARCH part is empty; include the lines to replace")
    exact = _places(lines, change.search)
    loose = _places(list(map(_spaced, lines)), tuple(map(_spaced, change.search)))
    own = [[at for at in found if _are_own(kernel[at : at + size])] for found in (exact, loose)]
    places: list[int] = next(filter(None, (*own, exact, loose)), [])
    if len(places) > 1 and change.at is not None and change.at - 1 in places:
        places = [change.at - 1]
    if not places:
        raise EditError(f"its lines are not in the kernel: {_quote(lines, change.search)}")
    if len(places) > 1:
        where = ", ".join(str(place + 1) for place in places[:5])
        raise EditError(
            f"its lines match {len(places)} places (lines {where}); include more lines around them"
        )
    at = places[0]
    return [*kernel[:at], *_written(kernel[at : at + size], change.replace), *kernel[at + size :]]


def _written(before: list[_Line], texts: tuple[str, ...]) -> list[_Line]:
    """What a block puts there; lines that it keeps, at its ends, are still the source's own."""
    same = [line.text == text for line, text in zip(before, texts, strict=False)]
    head = [*same, False].index(False)
    rest, left = before[head:], texts[head:]
    same = [line.text == text for line, text in zip(rest[::-1], left[::-1], strict=False)]
    tail = [*same, False].index(False)
    middle = [_Line(text, is_own=False) for text in left[: len(left) - tail]]
    return [*before[:head], *middle, *rest[len(rest) - tail :]]


def _are_own(lines: list[_Line]) -> bool:
    return all(line.is_own for line in lines)


def _spaced(line: str) -> str:
    return " ".join(line.split())


def _places(lines: list[str], search: tuple[str, ...]) -> list[int]:
    size = len(search)
    first = search[0]
    return [
        at
        for at in range(len(lines) - size + 1)
        if lines[at] == first and tuple(lines[at : at + size]) == search
    ]


def _quote(lines: list[str], search: tuple[str, ...]) -> str:
    """The first line of a block that the source does not have, else its first line."""
    have = {" ".join(line.split()) for line in lines}
    missing = next((x for x in search if x.strip() and " ".join(x.split()) not in have), None)
    if missing is None:
        return "all the lines exist, but not one right after another"
    return f"there is no line {missing.strip()[:120]!r}"
