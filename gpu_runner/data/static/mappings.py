"""Calls of `mmap`: whether they ask for anything but private memory of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gpu_runner.data.static.case import Case, Finding
from gpu_runner.data.static.names import is_namespace
from gpu_runner.data.static.scopes import MEMBER
from gpu_runner.data.static.tokens import Kind, Token, closing, text_at

_RIGHTS = 1 | 2
"""PROT_READ and PROT_WRITE, of what `mmap` may ask; the numbers are Linux's."""
_FLAGS = 0x02 | 0x20 | 0x4000 | 0x8000 | 0x20000 | 0x40000 | 21 << 26 | 30 << 26
"""MAP_PRIVATE, _ANONYMOUS, _NORESERVE, _POPULATE, _STACK, _HUGETLB, _HUGE_2MB and _HUGE_1GB."""
_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,8}|0|[1-9][0-9]{0,9}")
_SHIFTED = re.compile(r"\( ([1-9][0-9]{0,2})[uU]? << ([0-9]{1,2}) \)")
_RIGHTS_AT, _FLAGS_AT, _ARGUMENTS = 2, 3, 6


def odd_mappings(case: Case) -> Iterator[Finding]:
    """Every use of `mmap` whose rights and flags are not, after the macros, harmless numbers."""
    for stream in case.unit.passes:
        for i, token in enumerate(stream):
            if token.text not in ("mmap", "mmap64") or token.kind is not Kind.WORD:
                continue
            if text_at(stream, i - 1) in MEMBER or _is_of_a_namespace(stream, i):
                continue
            if not _is_harmless(stream, i):
                sentence = f"{token.text!r} with other rights or flags than those of private memory"
                yield Finding("mmap", token.line, sentence)


def _is_of_a_namespace(stream: Sequence[Token], i: int) -> bool:
    return text_at(stream, i - 1) == "::" and is_namespace(text_at(stream, i - 2))


def _is_harmless(stream: Sequence[Token], i: int) -> bool:
    """Whether `mmap` is called at `i` with harmless rights and flags, numbers joined by `|`."""
    if text_at(stream, i + 1) != "(":
        return False
    arguments: list[list[Token]] = [[]]
    depth = 0
    for token in stream[i + 2 : closing(stream, i + 1)]:
        mark = token.text if token.kind is Kind.MARK else ""
        depth += (mark in ("(", "[", "{")) - (mark in (")", "]", "}"))
        if mark == "," and depth == 0:
            arguments.append([])
        else:
            arguments[-1].append(token)
    if len(arguments) != _ARGUMENTS:
        return False
    return _only(_RIGHTS, arguments[_RIGHTS_AT]) and _only(_FLAGS, arguments[_FLAGS_AT])


def _only(allowed: int, argument: Sequence[Token]) -> bool:
    """Whether an argument is numbers joined by `|`, in brackets or not, without any other bit."""
    text = _SHIFTED.sub(_shifted, " ".join(token.text for token in argument))
    terms = [term.strip(" ()") for term in text.split("|")]
    return all(_NUMBER.fullmatch(term) and not int(term, 0) & ~allowed for term in terms)


def _shifted(match: re.Match[str]) -> str:
    return str(int(match[1]) << int(match[2]))
