"""Where in a source a name that is declared there stands for what the source has made."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from gpu_runner.data.static import names
from gpu_runner.data.static.tokens import SEARCH_LIMIT, Kind, Token, text_at

MEMBER = {".", "->"}
_AFTER_PARAMETERS = {"const", "noexcept", "override", "final", "volatile", "mutable", "&", "&&"}
_IN_TYPES = {"::", "<", ">", ">>", "*", "&", "&&", ","}
_CONTROL = {"if", "for", "while", "switch"}
_TAGS = {"struct", "class", "union", "enum", "namespace", "typename"}
_OPENS = {"(": ")", "[": "]", "{": "}"}
_ENUM_HEAD = 6  # tokens before its bracket: enum class Name : unsigned char

_Ranges = Mapping[str, Sequence[tuple[int, int]]]


class Scopes:
    """Brackets of a stream, and the ranges in which its names are its own."""

    def __init__(self, stream: Sequence[Token]) -> None:
        self._stream = stream
        self._partner: dict[int, int] = {}  # of each open bracket
        self._around: list[int] = []  # the innermost open bracket around each token, or -1
        self._match()

    def calls_its_own(self, i: int) -> bool:
        """Whether the name at `i` is declared there as what can be called: no function of libc."""
        return _within(self._callable, self._stream[i].text, i)

    def perhaps_its_own(self, i: int) -> bool:
        """Whether the name at `i` may be declared there, as whatever."""
        return _within(self._perhaps, self._stream[i].text, i)

    @cached_property
    def declared(self) -> frozenset[str]:
        """Names that are declared anywhere as what can be called."""
        return frozenset(self._callable)

    @cached_property
    def defined(self) -> dict[str, int]:
        """Functions with a body: name -> line of the first such name."""
        found: dict[str, int] = {}
        for start in self._partner:
            if self._text(start) == "(" and self._is_word(start - 1) and self._body(start) >= 0:
                found.setdefault(self._text(start - 1), self._stream[start - 1].line)
        return found

    @cached_property
    def _callable(self) -> _Ranges:
        variables = set(names.variables(self._stream))
        return self._ranges(
            i for i in range(len(self._stream)) if i in variables or self._is_callable(i)
        )

    @cached_property
    def _perhaps(self) -> _Ranges:
        return self._ranges(
            i
            for i in names.perhaps_declared(self._stream)
            if not self._is_declarator(i) or self._is_pointer(self._around[i])
        )

    def _ranges(self, places: Iterator[int]) -> _Ranges:
        found: dict[str, list[tuple[int, int]]] = {}
        for i in places:
            found.setdefault(self._text(i), []).append(self._range(i))
        return {name: _merged(ranges) for name, ranges in found.items()}

    def _match(self) -> None:
        around: list[int] = []
        for i, token in enumerate(self._stream):
            mark = token.text if token.kind is Kind.MARK else ""
            if mark in _OPENS.values() and around:
                self._partner[around.pop()] = i
            self._around.append(around[-1] if around else -1)
            if mark in _OPENS:
                around.append(i)
        self._partner |= dict.fromkeys(around, len(self._stream))

    def _range(self, i: int) -> tuple[int, int]:
        """From the declaration of a name at `i` to the end of its block; outside of functions, all.

        Parameters count to the end of the body, and without one to that of their list.
        """
        at = self._around[i]
        if self._is_declarator(i):
            at = self._around[at]
        for _ in range(SEARCH_LIMIT):
            if at < 0:
                return 0, len(self._stream)
            mark = self._text(at)
            if mark == "(":
                return i, self._end_of_list(at)
            if mark == "{" and not self._is_enumeration(at):
                local = at in self._in_functions
                return (i, self._partner[at]) if local else (0, len(self._stream))
            at = self._around[at]
        return i, i + 1

    def _end_of_list(self, start: int) -> int:
        body = self._body(start)
        if body >= 0:
            return self._partner[body]
        end = self._partner[start]
        if self._text(start - 1) in _CONTROL:
            last = end + SEARCH_LIMIT
            while end < last and self._text(end) != ";":
                end += 1
        return end

    def _body(self, start: int) -> int:
        """The brace behind a list of parameters, or of what a statement asks; -1 without one."""
        before = self._text(start - 1)
        if names.begins_expression(before) and before not in _CONTROL:
            return -1
        at = self._partner[start] + 1
        while self._text(at) in _AFTER_PARAMETERS:
            at += 1
            if self._text(at) == "(" and self._text(at - 1) == "noexcept":
                at = self._partner[at] + 1
        if self._text(at) == "->":
            at = self._behind_type(at + 1)
        elif self._text(at) == ":" and self._is_word(at + 1):
            at = self._behind_initialisers(at + 1)
        return at if self._text(at) == "{" and at in self._partner else -1

    def _behind_type(self, at: int) -> int:
        end = at + SEARCH_LIMIT
        while at < end and (self._is_word(at) or self._text(at) in _IN_TYPES):
            at += 1
            if self._text(at) == "(" and self._text(at - 1) == "decltype":
                at = self._partner[at] + 1
        return at

    def _behind_initialisers(self, at: int) -> int:
        end = at + SEARCH_LIMIT
        while at < end and self._is_word(at):
            at = self._behind_type(at)
            at = self._partner.get(at, at) + 1
            if self._text(at) != ",":
                break
            at += 1
        return at

    @cached_property
    def _in_functions(self) -> frozenset[int]:
        """Open brackets that are the body of a function, or stand in one or in a list."""
        lists = [start for start in self._partner if self._text(start) == "("]
        found = {*lists, *(self._body(start) for start in lists)} - {-1}
        for start in sorted(self._partner):
            lambda_or_block = self._text(start - 1) in ("else", "do", "try", "]")
            if self._around[start] in found or (self._text(start) == "{" and lambda_or_block):
                found.add(start)
        return frozenset(found)

    def _is_enumeration(self, brace: int) -> bool:
        head = range(max(brace - _ENUM_HEAD, 0), brace)
        return any(self._text(at) == "enum" for at in head)

    def _is_callable(self, i: int) -> bool:
        """Whether a name that can be called is declared at `i`: with a value, or as a parameter.

        `TYPE NAME;` is none: the type of a function makes it a declaration of libc's.
        """
        before, behind = self._text(i - 1), self._text(i + 1)
        member = before in MEMBER and self._text(i - 2) != "."  # but of `...`
        if not self._is_word(i) or member or before == "::":
            return False
        if behind == "=":
            return True
        around = self._around[i]
        if behind == "{" and before not in _TAGS:
            return self._is_type(i - 1)
        if self._text(around) == "[":
            reference = self._text(around - 1) in ("&", "&&")
            return self._text(around - 1 - reference) == "auto"
        if behind == ":" and self._text(around - 1) == "for":
            return True
        if self._is_declarator(i):
            return self._text(i + 2) == "(" and self._is_pointer(around)
        return behind in (",", ")", "[") and self._is_parameter(i)

    def _is_declarator(self, i: int) -> bool:
        """Whether brackets around a name belong to its type: `T (*NAME)(`, `T (&NAME)[`."""
        around = self._around[i]
        inside = around == i - 2 and self._text(around) == "(" and self._text(i + 1) == ")"
        return inside and self._text(i - 1) in ("*", "&") and self._text(i + 2) in ("(", "[")

    def _is_pointer(self, start: int) -> bool:
        """Whether `T (*NAME)(...)`, with a bracket at `start`, declares one; else it calls T."""
        type_of = self._text(start - 1)
        return self._is_type(start - 1) and type_of not in self.defined

    def _is_parameter(self, i: int) -> bool:
        """Whether `TYPE NAME` at `i` stands in the list of a function or lambda with a body."""
        around, at = self._around[i], i - 1
        while self._text(at) in ("*", "&", "&&", "."):
            at -= 1
        if self._text(around) != "(" or at <= around or not self._is_type(at):
            return False
        return self._text(around - 1) not in _CONTROL and self._body(around) >= 0

    def _is_type(self, at: int) -> bool:
        text = self._text(at)
        return text in (">", ">>") or (self._is_word(at) and not names.begins_expression(text))

    def _is_word(self, at: int) -> bool:
        return 0 <= at < len(self._stream) and self._stream[at].kind is Kind.WORD

    def _text(self, at: int) -> str:
        return text_at(self._stream, at)


def _within(ranges: _Ranges, name: str, i: int) -> bool:
    found = ranges.get(name, ())
    at = bisect_right(found, (i, math.inf)) - 1
    return at >= 0 and i < found[at][1]


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same places in ranges that do not overlap, in order."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
