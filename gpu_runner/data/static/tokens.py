"""Cuts C++ and CUDA sources into the tokens that a compiler would see, each with its line."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

_SPLICE = re.compile(r"\\[ \t\f\v]*\r?\n")  # GCC joins lines also over blanks behind the backslash
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})")
_RAW = re.compile(r'(?:u8|[uUL])?R"([^()\\\s"]{0,16})\(')
_TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?)
    | (?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[0-9A-Za-z_.])*)
    | (?P<word>(?:[A-Za-z_$]|[^\x00-\x7f]|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8})
               (?:[A-Za-z0-9_$]|[^\x00-\x7f]|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8})*)
    | (?P<newline>\n)
    | (?P<space>[^\S\n]+)
    | (?P<mark>%:%:|<<<|>>>|<<=|>>=|->|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=
        |\#\#|<:(?!:(?![:>]))|:>|<%|%>|%:|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIGRAPHS = {"%:%:": "##", "%:": "#", "<:": "[", ":>": "]", "<%": "{", "%>": "}"}
_KEYWORDS = {"and": "&&", "or": "||", "not": "!", "not_eq": "!=", "bitand": "&"}
_STRING_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]+|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.S)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_PAIRS = {"(": ")", "[": "]", "{": "}"}
SEARCH_LIMIT = 64
"""Tokens looked at behind one token, so that no source takes time by the square of its size."""


class Kind(Enum):
    """What a token is; comments and blanks are none."""

    WORD = auto()
    NUMBER = auto()
    STRING = auto()
    CHARACTER = auto()
    MARK = auto()
    NEWLINE = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and the line of the source on which it begins, from 1.

    Digraphs and alternative words are the mark that they stand for; a string holds its meaning.
    """

    kind: Kind
    text: str
    line: int


class _Text:
    """A source without its line splices, and the way back to offsets and lines of the source."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._ends = [match.end() for match in _SPLICE.finditer(source)]
        self._starts: list[int] = []  # of splices, as offsets into `joined`
        removed = 0
        self._removed = [0]
        for match in _SPLICE.finditer(source):
            self._starts.append(match.start() - removed)
            removed += match.end() - match.start()
            self._removed.append(removed)
        self.joined = _SPLICE.sub("", source)
        self._newlines = [match.start() for match in re.finditer("\n", source)]

    def origin(self, offset: int) -> int:
        """Offset in the source of an offset in `joined`."""
        return offset + self._removed[bisect_right(self._starts, offset)]

    def joined_offset(self, origin: int) -> int:
        """Offset in `joined` of an offset in the source that is in no splice."""
        return origin - self._removed[bisect_right(self._ends, origin)]

    def line(self, offset: int) -> int:
        """Line of the source, from 1, of an offset in `joined`."""
        return bisect_left(self._newlines, self.origin(offset)) + 1


def tokens(source: str) -> Iterator[Token]:
    """The tokens of a source, ends of lines included."""
    text = _Text(source)
    at = 0
    while at < len(text.joined):
        raw = _RAW.match(text.joined, at)
        if raw is not None:
            content, end = _raw_string(text, raw)
            yield Token(Kind.STRING, content, text.line(at))
            at = end
            continue
        match = _TOKEN.match(text.joined, at)
        if match is None:  # no character is left out, so this cannot be
            return
        token = _token(match, text)
        if token is not None:
            yield token
        at = match.end()


def _raw_string(text: _Text, match: re.Match[str]) -> tuple[str, int]:
    """What a raw string says, and where it ends; its line splices are no splices."""
    start = text.origin(match.end() - 1) + 1
    close = f'){match[1]}"'
    end = text.source.find(close, start)
    if end < 0:
        return text.source[start:], len(text.joined)
    return text.source[start:end], max(match.end(), text.joined_offset(end + len(close)))


def _token(match: re.Match[str], text: _Text) -> Token | None:
    found, content = match.lastgroup or "", match[0]
    if found in ("comment", "space"):
        return None
    line = text.line(match.start())
    if found == "word":
        content = _ESCAPE.sub(_character, content)
        if content in _KEYWORDS:
            return Token(Kind.MARK, _KEYWORDS[content], line)
    elif found == "string":
        content = _meaning(content[content.index('"') + 1 :].removesuffix('"'))
    elif found == "mark":
        content = _DIGRAPHS.get(content, content)
    return Token(Kind[found.upper()], content, line)


def _character(match: re.Match[str]) -> str:
    code = int(match[1] or match[2], 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def _meaning(literal: str) -> str:
    return _STRING_ESCAPE.sub(_unescaped, literal) if "\\" in literal else literal


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "xuU" and len(escape) > 1:
        code = int(escape[1:], 16)
    elif escape[0] in "01234567":
        code = int(escape, 8)
    else:
        return _SIMPLE_ESCAPES.get(escape, escape)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def text_at(stream: Sequence[Token], index: int) -> str:
    """Text of a mark or word; empty outside of the stream, and for strings."""
    if 0 <= index < len(stream) and stream[index].kind is not Kind.STRING:
        return stream[index].text
    return ""


def closing(stream: Sequence[Token], start: int) -> int:
    """Index of the bracket that closes the one at `start`, or of where the search is given up."""
    opens = stream[start].text
    closes, depth = _PAIRS[opens], 0
    end = min(start + SEARCH_LIMIT, len(stream))
    for i in range(start, end):
        if stream[i].kind is Kind.MARK:
            depth += (stream[i].text == opens) - (stream[i].text == closes)
            if depth == 0:
                return i
    return end
