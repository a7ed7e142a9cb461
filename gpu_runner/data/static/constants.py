"""Numbers that a source spells: literals, named constants, sums, products and shifts of them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from gpu_runner.data.static.tokens import Kind, Token, text_at

_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)")


def constants(stream: Sequence[Token]) -> dict[str, int]:
    """Names that the source gives a number once: `constexpr int N = 4096;`, `enum { N = 3 }`."""
    found: dict[str, int] = {}
    twice: set[str] = set()
    constant = False
    for i, token in enumerate(stream):
        if token.text in ("const", "constexpr", "enum"):
            constant = True
        elif token.text in (";", ")"):
            constant = False
        elif constant and token.text == "=" and stream[i - 1].kind is Kind.WORD:
            name = stream[i - 1].text
            number = value(stream, i + 1, found)
            if name in found or number is None:
                twice.add(name)
            else:
                found[name] = number
    return {name: value for name, value in found.items() if name not in twice}


def before(stream: Sequence[Token], i: int, constants: Mapping[str, int]) -> int | None:
    """The number that ends before `i`, as in `4096 == N`."""
    at = i - 1
    while text_at(stream, at) == ")":
        at -= 1
    mark = text_at(stream, at - 1)
    if at < 0 or mark in ("*", "/", "+", "-", "%", ".", "->", "<<"):
        return None
    return _number(stream[at], constants)


def value(stream: Sequence[Token], start: int, constants: Mapping[str, int]) -> int | None:
    """A product, sum or shift of numbers that begins at `start`; None for anything else."""
    end = start
    while end < len(stream) and text_at(stream, end) == "(":
        end += 1
    result = _number(stream[end], constants) if end < len(stream) else None
    end += 1
    while result is not None and text_at(stream, end) in ("*", "<<", "+"):
        other = _number(stream[end + 1], constants) if end + 1 < len(stream) else None
        if other is None:
            return None
        result = _combined(result, text_at(stream, end), other)
        end += 2
    if text_at(stream, end) in ("-", "/", "%", ".", "[", "(", "::", "->"):
        return None
    return result


def _combined(value: int, mark: str, other: int) -> int | None:
    if mark == "<<":
        return value << other if other < 48 and value < 1 << 16 else None
    result = value * other if mark == "*" else value + other
    return result if math.log2(result + 1) < 64 else None


def _number(token: Token, constants: Mapping[str, int]) -> int | None:
    if token.kind is Kind.WORD:
        return constants.get(token.text)
    if token.kind is not Kind.NUMBER:
        return None
    text = token.text.replace("'", "").rstrip("uUlLzZ")
    if not _NUMBER.fullmatch(text) or len(text) > 20:
        return None
    if text[:2] in ("0x", "0X", "0b", "0B"):
        return int(text, 0)
    return int(text, 8) if text.startswith("0") and set(text) <= set("01234567") else _decimal(text)


def _decimal(text: str) -> int | None:
    return None if len(text) > 1 and text.startswith("0") else int(text)
