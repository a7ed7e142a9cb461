"""Say on which line of a TOML text each of its fields stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

_TOKEN = re.compile(
    r"""
      (?P<string>
          \"{3} (?: [^"\\] | \\. | "{1,2}(?!") )*+ "{3,5}
        | '{3} (?: [^'] | '{1,2}(?!') )*+ '{3,5}
        | " (?: [^"\\\n] | \\. )*+ "
        | ' [^'\n]*+ '
      )
    | (?P<skipped> \#[^\n]*+ | [ \t\r]++ )
    | (?P<mark> [\[\]{}=,.\n] )
    | (?P<bare> [^\s\[\]{}=,."'\#]++ )
    """,
    re.VERBOSE | re.DOTALL,
)
_VALUE_ENDS = (",", "]", "}", "\n", "")


def line_of(lines: Mapping[str, int], field: str) -> int | None:
    """The line of a field, else of the nearest one around it that the text has, else None."""
    while field and field not in lines:
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return lines.get(field)


def field_lines(text: str) -> dict[str, int]:
    """The 1-based line of every field of a valid TOML text, by its dotted path.

    Paths are those of `DataError`: `workloads[3].parameters.N`. A field of an inline table has the
    line of its key, an item of a list that of its beginning, a table that of its first header.
    """
    return _Reader(text).read()


class _Reader:
    """One pass over the tokens. The text is known to be TOML, so that nothing is checked."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, int]] = []
        line = 1
        for match in _TOKEN.finditer(text):
            if match.lastgroup != "skipped":
                self._tokens.append((match[0], line))
            line += match[0].count("\n")
        self._tokens.append(("", line))
        self._next = 0
        self._lines: dict[str, int] = {}
        self._tables: dict[str, int] = {}  # how many tables an array of tables has so far

    def read(self) -> dict[str, int]:
        table = ""
        while self._peek():
            if self._peek() == "\n":
                self._take()
            elif self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _peek(self) -> str:
        return self._tokens[self._next][0]

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][0]

    def _line(self) -> int:
        return self._tokens[self._next][1]

    def _header(self) -> str:
        """The path of the table that a header opens."""
        line = self._line()
        self._take()
        is_array = self._peek() == "["
        if is_array:
            self._take()
        parts, path = self._key(), ""
        for position, part in enumerate(parts, 1):
            path = _joined(path, part)
            self._lines.setdefault(path, line)
            if is_array and position == len(parts):
                self._tables[path] = self._tables.get(path, 0) + 1
            if path in self._tables:
                path = f"{path}[{self._tables[path] - 1}]"
                self._lines.setdefault(path, line)
        while self._peek() not in ("\n", ""):
            self._take()
        return path

    def _key(self) -> list[str]:
        parts = [_plain(self._take())]
        while self._peek() == ".":
            self._take()
            parts.append(_plain(self._take()))
        return parts

    def _pair(self, path: str) -> None:
        line = self._line()
        for part in self._key():
            path = _joined(path, part)
            self._lines.setdefault(path, line)
        self._take()  # =
        self._value(path)

    def _value(self, path: str) -> None:
        match self._peek():
            case "{":
                self._take()
                while self._skip_to_item() != "}":
                    self._pair(path)
                self._take()
            case "[":
                self._take()
                index = 0
                while self._skip_to_item() != "]":
                    self._lines.setdefault(f"{path}[{index}]", self._line())
                    self._value(f"{path}[{index}]")
                    index += 1
                self._take()
            case _:
                while self._peek() not in _VALUE_ENDS:
                    self._take()

    def _skip_to_item(self) -> str:
        while self._peek() in (",", "\n"):
            self._take()
        return self._peek()


def _joined(path: str, part: str) -> str:
    return f"{path}.{part}" if path else part


def _plain(key: str) -> str:
    """A key without its quotes."""
    return next(iter(tomllib.loads(f"{key} = 0"))) if key[:1] in "\"'" else key
