"""Reads calls of macros that nobody here knows as if they joined their arguments to one word."""

from __future__ import annotations

import re
from gpu_runner.data.static.preprocess import Unit
from gpu_runner.data.static.tokens import Kind, Token

_LIKE_A_MACRO = re.compile(r"(?=[0-9_]*[A-Z])[A-Z0-9_]+\Z|_\w")
_JOINS = re.compile("concat|paste|join|glue|_cat|cat_", re.IGNORECASE)
_LONGEST = 20  # tokens of such a call


def joined(unit: Unit) -> tuple[Token, ...]:
    """The code and its conditions with such calls joined; empty if there are none."""
    code = (*unit.expanded, *unit.conditions)
    result: list[Token] = []
    open_brackets: list[int] = []  # places in `result`
    for token in code:
        result.append(token)
        if token.kind is not Kind.MARK:
            continue
        if token.text == "(":
            open_brackets.append(len(result) - 1)
        elif token.text == ")" and open_brackets:
            start = open_brackets.pop() - 1
            if start >= 0 and len(result) - start <= _LONGEST:
                result[start:] = _joined(result[start:])
    return () if len(result) == len(code) else tuple(result)


def _joined(call: list[Token]) -> list[Token]:
    """`NAME(a, b)` as the word `ab` if it is the call of a macro with words; else unchanged."""
    name, parts, marks = call[0], call[2:-1:2], call[3:-1:2]
    is_macro = _LIKE_A_MACRO.match(name.text) or _JOINS.search(name.text)
    macro = name.kind is Kind.WORD and is_macro
    listed = len(parts) == len(marks) + 1 and all(mark.text == "," for mark in marks)
    if not macro or len(parts) < 2 or not listed or parts[0].kind is not Kind.WORD:
        return call
    if any(part.kind not in (Kind.WORD, Kind.NUMBER) for part in parts):
        return call
    return [Token(Kind.WORD, "".join(part.text for part in parts), name.line)]
