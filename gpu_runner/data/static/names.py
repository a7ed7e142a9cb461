"""Whether a name that is also a C function's stands for something that the source has made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gpu_runner.data.static.tokens import SEARCH_LIMIT, Kind, Token, closing, text_at

_BEFORE_EXPRESSIONS = re.compile(
    r"return|else|do|throw|case|sizeof|alignof|new|delete|and|or|not|xor|bitand|bitor|compl|not_eq"
    r"|and_eq|or_eq|xor_eq|co_return|co_yield|co_await|noexcept|requires|decltype|typeof|__typeof__"
    r"|__extension__|__real__|__imag__|__alignof__"
)
_NO_TYPES = re.compile(r"extern|typedef|using|friend|goto|operator|if")
_ONLY_IN_TYPES = re.compile(
    r"auto|bool|char|double|float|int|long|short|signed|unsigned|void|const|constexpr|static"
)
_TYPES_OF_NUMBERS = re.compile(
    rf"{_ONLY_IN_TYPES.pattern}|size_t|half|__half|__nv_bfloat16"
    r"|__nv_fp8_e4m3|__nv_fp8_e5m2"
)
_BEFORE_STATEMENTS = {";", "{", "}", "(", ":"}
_BEHIND_NAMES = {"=", ";", ",", ")", "[", "{", ":", "(", ">"}
_BEHIND_LATER_NAMES = {",", "]", "}", "=", ";", "[", ")"}
_ENUM_HEAD = 6  # tokens before its bracket: enum class Name : unsigned char


def begins_expression(word: str) -> bool:
    """Whether an expression stands behind the word, which is neither a type nor a namespace."""
    return _BEFORE_EXPRESSIONS.fullmatch(word) is not None


def is_namespace(word: str) -> bool:
    """Whether a namespace or class can have that name: `WORD::` then is no `::` of its own."""
    keyword = begins_expression(word) or _NO_TYPES.fullmatch(word) or word in ("const", "typename")
    return word.isidentifier() and not keyword


def variables(stream: Sequence[Token]) -> Iterator[int]:
    """Places of names in `TYPE NAME(VALUES)`, which makes a variable, and is no call.

    Values that could be parameters of a function (`int NAME(const char*)`) or are text make none.
    """
    for i in range(len(stream)):
        if i and text_at(stream, i - 1) not in _BEFORE_STATEMENTS:
            continue
        at = _behind_type(stream, i)
        while at and _has_values(stream, at + 1):
            yield at
            at = closing(stream, at + 1) + 2
            if text_at(stream, at - 1) != "," or not _is_word(stream, at):
                break


def _behind_type(stream: Sequence[Token], start: int) -> int:
    """Index of the name in `TYPE NAME(`; 0 if no such thing begins at `start`."""
    first, at, angles = text_at(stream, start), start, 0
    end = min(start + SEARCH_LIMIT, len(stream))
    while at < end:
        text = text_at(stream, at)
        if begins_expression(text) or _NO_TYPES.fullmatch(text) or not (
            _is_word(stream, at) or text in ("::", "<", ">", ">>", "*", "&")
            or (angles and (text == "," or stream[at].kind is Kind.NUMBER))
        ):  # fmt: skip
            return 0
        angles += text.count("<") - text.count(">")
        if angles == 0 and _is_word(stream, at) and text_at(stream, at + 1) == "(":
            before = text_at(stream, at - 1)
            pointer = before in ("*", "&") and _TYPES_OF_NUMBERS.fullmatch(first)
            typed = before in (">", ">>") or pointer or _is_word(stream, at - 1)
            return at if at > start and typed else 0
        at += 1
    return 0


def _has_values(stream: Sequence[Token], start: int) -> bool:
    """Whether the brackets at `start` hold values, and no parameters."""
    if text_at(stream, start) != "(":
        return False
    end = closing(stream, start)
    if end == start + 1 or text_at(stream, end) != ")":
        return False
    for i in range(start + 1, end):
        text, after = text_at(stream, i), text_at(stream, i + 1)
        two_words = _is_word(stream, i) and _is_word(stream, i + 1)
        open_ended = text in ("*", "&", "&&", "...") and after in (",", ")")
        if not text or _ONLY_IN_TYPES.fullmatch(text) or two_words or open_ended:
            return False
    return True


def initialises_member(stream: Sequence[Token], i: int) -> bool:
    """Whether `NAME(VALUES)` at `i` stands in a constructor's list, which ends before its body."""
    at = i
    while _is_word(stream, at) and text_at(stream, at + 1) in ("(", "{"):
        at = closing(stream, at + 1) + 1
        if text_at(stream, at) == "{":
            return text_at(stream, i - 1) in (":", ",")
        if text_at(stream, at) != "," or at - i > SEARCH_LIMIT:
            return False
        at += 1
    return False


def perhaps_declared(stream: Sequence[Token]) -> Iterator[int]:
    """Places of names that stand where a declaration has them; too many rather than too few."""
    return (i for i in range(len(stream)) if _is_perhaps_declared(stream, i))


def _is_perhaps_declared(stream: Sequence[Token], i: int) -> bool:
    if stream[i].kind is not Kind.WORD:
        return False
    behind, before = text_at(stream, i + 1), i - 1
    if text_at(stream, before) == "{":  # of an enumeration, or of values
        head = range(max(before - _ENUM_HEAD, 0), before)
        return any(text_at(stream, at) == "enum" for at in head)
    if text_at(stream, before) in (",", "["):
        return behind in _BEHIND_LATER_NAMES
    while text_at(stream, before) in ("*", "&", "&&"):
        before -= 1
    if text_at(stream, before) == "(" and before < i - 1:  # T (*name)(...), T (&name)[4]
        in_brackets = behind == ")" and text_at(stream, i + 2) in ("(", "[")
        return in_brackets and _is_type(stream, before - 1)
    return behind in _BEHIND_NAMES and _is_type(stream, before)


def _is_type(stream: Sequence[Token], index: int) -> bool:
    """Whether a type can end there."""
    text = text_at(stream, index)
    return text in (">", ">>") or (_is_word(stream, index) and not begins_expression(text))


def _is_word(stream: Sequence[Token], index: int) -> bool:
    return 0 <= index < len(stream) and stream[index].kind is Kind.WORD
