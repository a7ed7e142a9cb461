"""Calls of `mmap`: whether they ask for anything but private memory of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gpu_runner.data.static.case import Case, Finding
from gpu_runner.data.static.names import begins_expression, is_namespace
from gpu_runner.data.static.scopes import MEMBER
from gpu_runner.data.static.tokens import Kind, Token, closing, text_at

_RIGHTS = re.compile(r"PROT_(?:NONE|READ|WRITE)")
_FLAGS = re.compile(
    r"MAP_(?:PRIVATE|ANON|ANONYMOUS|NORESERVE|POPULATE|STACK|HUGETLB|HUGE_2MB|HUGE_1GB)"
)
_RIGHTS_AT, _FLAGS_AT, _ARGUMENTS = 2, 3, 6
_HEADER = "<sys/mman.h>"


def odd_mappings(case: Case) -> Iterator[Finding]:
    """Every use of `mmap` whose rights and flags are not spelled by the harmless names alone."""
    plain_names = _header_names_them(case)
    for stream in case.after_macros:
        for i, token in enumerate(stream):
            if token.text not in ("mmap", "mmap64") or token.kind is not Kind.WORD:
                continue
            if text_at(stream, i - 1) in MEMBER or _is_of_a_namespace(stream, i):
                continue
            if not (plain_names and _is_harmless(stream, i)):
                sentence = f"{token.text!r} with other rights or flags than those of private memory"
                yield Finding("mmap", token.line, sentence)


def _is_of_a_namespace(stream: Sequence[Token], i: int) -> bool:
    return text_at(stream, i - 1) == "::" and is_namespace(text_at(stream, i - 2))


def _is_harmless(stream: Sequence[Token], i: int) -> bool:
    """Whether `mmap` is called at `i` with harmless names, joined by `|`, for rights and flags."""
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


def _only(names: re.Pattern[str], argument: Sequence[Token]) -> bool:
    words = [token.text for token in argument if token.text not in ("|", "(", ")")]
    return bool(words) and all(names.fullmatch(word) for word in words)


def _header_names_them(case: Case) -> bool:
    """Whether the harmless names can only be those of the C library's header."""
    directives = case.unit.directives
    if not any(d.name == "include" and d.spelled == _HEADER for d in directives):
        return False
    changed = (d for d in directives if d.name in ("define", "undef") and d.rest)
    if any(_is_name(directive.rest[0].text) for directive in changed):
        return False
    return not any(_declares(case.unit.expanded))


def _declares(stream: Sequence[Token]) -> Iterator[bool]:
    """For each of the harmless names, whether it stands where a declaration has it."""
    enumeration = False
    for i, token in enumerate(stream):
        if token.text == "enum":
            enumeration = True
        elif token.text in ("}", ";"):
            enumeration = False
        elif token.kind is Kind.WORD and _is_name(token.text):
            before, behind = text_at(stream, i - 1), text_at(stream, i + 1)
            typed = before.isidentifier() and not begins_expression(before)
            yield enumeration or typed or before == "[" or behind in ("=", "(", "{", "[")


def _is_name(word: str) -> bool:
    return bool(_RIGHTS.fullmatch(word) or _FLAGS.fullmatch(word))
