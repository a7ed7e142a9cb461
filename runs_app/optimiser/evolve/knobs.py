"""Knobs: constants whose other values a kernel declares in a trailing comment.

    constexpr int TILE = 32;  // knob: 8 16 32 64
    #define UNROLL 4          // knob: 1 2 4 8
    using VEC = float4;       // knob: float float2 float4

The source is read as text and never executed. Comments within strings, raw strings and block
comments are none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from runs_app.optimiser.evolve.cpp_text import TOKEN

MAX_KNOBS = 16
MAX_VALUES = 32  # of one knob

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUE = re.compile(r"[A-Za-z0-9_.+-]+")
_TYPE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_:]*")
_DEFINE = re.compile(r"\s*#\s*define\s+(\S+)\s+(\S+)\s*")
_COMMENT = re.compile(r"//\s*knob:(.*)", re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")


class KnobError(ValueError):
    """A knob that cannot be used; `line` counts from 1, 0 where no line is to blame."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.line = line
        self.reason = reason


@dataclass(frozen=True)
class Knob:
    """A constant, the values it may take, the one it has, and its line, from 1."""

    name: str
    values: tuple[str, ...]
    default: str
    line: int


@dataclass(frozen=True)
class _Declaration:
    """A knob, and where in the source its value stands."""

    knob: Knob
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.knob.default)


def find_knobs(source: str) -> tuple[Knob, ...]:
    """The knobs that a source declares, in its order; none is fine. Raises `KnobError`."""
    return tuple(declaration.knob for declaration in _declarations(source))


def with_knobs(source: str, values: Mapping[str, str]) -> str:
    """The source with other values in place, and every other character as it was.

    Knobs that `values` leaves out keep theirs. Raises `KnobError` for a bad declaration, and for
    a name or a value that the source does not declare.
    """
    declarations = _declarations(source)
    known = {declaration.knob.name for declaration in declarations}
    for name in values:
        if name not in known:
            have = ", ".join(sorted(known)) or "none"
            raise KnobError(0, f"no knob is named {name!r}; the source declares {have}")
    for declaration in reversed(declarations):  # from the end, so that earlier places stay
        knob = declaration.knob
        value = values.get(knob.name, knob.default)
        if value not in knob.values:
            allowed = " ".join(knob.values)
            raise KnobError(knob.line, f"{knob.name} cannot be {value!r}; allowed: {allowed}")
        source = source[: declaration.start] + value + source[declaration.end :]
    return source


def space_size(knobs: tuple[Knob, ...]) -> int:
    """How many combinations of values there are; 1 without knobs."""
    return math.prod(len(knob.values) for knob in knobs)


def _declarations(source: str) -> list[_Declaration]:
    found = dict[str, _Declaration]()
    for start, line, code, comment in _commented(source):
        declared = _COMMENT.fullmatch(comment)
        if not declared:
            continue
        name, value, offset = _constant(code, line)
        values = _values(declared[1], name, value, line)
        if name in found:
            raise KnobError(line, f"{name} is already a knob, on line {found[name].knob.line}")
        if len(found) == MAX_KNOBS:
            raise KnobError(line, f"{name} is one knob too many; the limit is {MAX_KNOBS}")
        found[name] = _Declaration(Knob(name, values, value, line), start + offset)
    return list(found.values())


def _commented(source: str) -> Iterator[tuple[int, int, str, str]]:
    """Each line comment: where its line starts, its number, the code before it, the comment.

    In the code, other comments are spaces and literals are NULs, so that offsets stay.
    """
    comments = [token for token in TOKEN.finditer(source) if token[0].startswith("//")]
    code = TOKEN.sub(_masked, source)
    line, counted = 1, 0
    for comment in comments:
        start = code.rfind("\n", 0, comment.start()) + 1
        line += code.count("\n", counted, start)
        counted = start
        yield start, line, code[start : comment.start()], comment[0]


def _masked(token: re.Match[str]) -> str:
    if token["comment"]:
        return _NOT_NEWLINE.sub(" ", token[0])
    if token["literal"]:
        return _NOT_NEWLINE.sub("\0", token[0])
    return token[0]


def _constant(code: str, line: int) -> tuple[str, str, int]:
    """Name and value of the constant that a line of code defines, and the value's offset."""
    define = _DEFINE.fullmatch(code)
    if define:
        name, value, offset = define[1], define[2], define.start(2)
    else:
        name, value, offset = _assigned(code, line)
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise KnobError(line, f"the value of {name!r} must be one plain word or number")
    return name, value, offset


def _assigned(code: str, line: int) -> tuple[str, str, int]:
    head, equals, tail = code.partition("=")
    words = head.split()
    plain = len(words) > 1 and all(_TYPE_WORD.fullmatch(word) for word in words)
    fixed = plain and ({"const", "constexpr"} & set(words[:-1]) or words[:-1] == ["using"])
    if not fixed or not equals or not tail.rstrip().endswith(";"):
        raise KnobError(
            line,
            "a knob's comment must end a line that defines one constant, such as "
            "'constexpr int TILE = 32;  // knob: 16 32'",
        )
    value = tail.rstrip()[:-1].strip()
    return words[-1], value, len(head) + 1 + len(tail) - len(tail.lstrip())


def _values(text: str, name: str, value: str, line: int) -> tuple[str, ...]:
    values = tuple(text.split())
    for word in values:
        if not _VALUE.fullmatch(word):
            raise KnobError(line, f"{word!r} of {name} is not a plain word or number")
    if len(values) < 2:
        raise KnobError(line, f"{name} needs at least two values to choose from")
    if len(values) > MAX_VALUES:
        raise KnobError(line, f"{name} has {len(values)} values; the limit is {MAX_VALUES}")
    if len(set(values)) < len(values):
        raise KnobError(line, f"{name} lists a value twice")
    if value not in values:
        raise KnobError(line, f"{name} is {value}, which is not one of its values")
    return values
