"""Reads C++ and CUDA sources as text: tokens, brackets, definitions, likeness; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

TOKEN = re.compile(
    r"""
      (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<literal>(?:u8|[uUL])?R"(?P<fence>[^()\\\s"]{0,16})\(.*?(?:\)(?P=fence)"|\Z)
        |"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    | (?P<word>\.?[0-9](?:[eEpP][+-]|'?[0-9A-Za-z_.])*|[A-Za-z_$][A-Za-z0-9_$]*)
    | (?P<splice>\\\r?\n)
    | (?P<newline>\n)
    | (?P<space>[^\S\n]+)
    | (?P<mark><<=|>>=|->|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SKIPPED = {"comment", "splice", "space"}
_CLOSES = {")": "(", "]": "[", "}": "{"}


def tokens(source: str) -> Iterator[str]:
    """Words, literals, marks and newlines; comments and other space are left out."""
    for match in TOKEN.finditer(source):
        if match.lastgroup not in _SKIPPED:
            yield match[0]


def normalised(source: str) -> str:
    """The source with comments and layout taken out: equal for sources that differ in these.

    A directive keeps its line to itself, because there an end of line means something.
    """
    lines: list[str] = []
    line: list[str] = []
    code: list[str] = []
    for atom in [*tokens(source), "\n"]:
        if atom != "\n":
            line.append(atom)
        elif line and line[0] == "#":
            lines += [" ".join(code), " ".join(line)]
            code, line = [], []
        else:
            code += line
            line = []
    lines.append(" ".join(code))
    return "\n".join(filter(None, lines))


def without_comments(source: str) -> str:
    """The source without comments; each is a space."""
    return TOKEN.sub(lambda match: " " if match["comment"] is not None else match[0], source)


def is_complete(source: str) -> bool:
    """Whether every bracket is closed by its kind, and every literal and comment ends."""
    open_brackets: list[str] = []
    for match in TOKEN.finditer(source):
        atom = match[0]
        if match["comment"] is not None:
            if atom.startswith("/*") and not (len(atom) > 3 and atom.endswith("*/")):
                return False
        elif match["literal"] is not None:
            if len(atom) < 2 or atom[-1] not in "\"'":
                return False
        elif atom in "([{":
            open_brackets.append(atom)
        elif atom in _CLOSES and (not open_brackets or open_brackets.pop() != _CLOSES[atom]):
            return False
    return not open_brackets


def defines(source: str, symbol: str) -> bool:
    """Whether the source defines a function of that name: `symbol(...) {` outside comments."""
    before = ""
    calls: list[bool] = []
    closed = False  # whether the parameter list of `symbol` has just ended
    for atom in tokens(source):
        if atom == "\n":
            continue
        if closed and atom == "{":
            return True
        closed = False
        if atom == "(":
            calls.append(before == symbol)
        elif atom == ")" and calls:
            closed = calls.pop()
        before = atom
    return False


def mentions(source: str, word: str) -> bool:
    """Whether a word stands in the code, not only in a comment or a literal."""
    return any(atom == word for atom in tokens(source))


SHINGLE = 5  # tokens

_LOOSE_TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\w+|[^\w\s]", re.DOTALL)


@lru_cache(maxsize=2048)
def shingles(source: str) -> frozenset[int]:
    """Hashes of all runs of `SHINGLE` tokens; comments and layout do not count."""
    tokens = [t for t in _LOOSE_TOKEN.findall(source) if not t.startswith(("//", "/*"))]
    last = max(1, len(tokens) - SHINGLE + 1)
    return frozenset(hash(tuple(tokens[at : at + SHINGLE])) for at in range(last))


def similarity(one: str, other: str) -> float:
    """Jaccard index of the shingles: 1 for the same code, 0 where no run of tokens is shared."""
    a, b = shingles(one), shingles(other)
    return len(a & b) / len(a | b)


def nearest(source: str, others: Iterable[tuple[int, str]]) -> tuple[int, float] | None:
    """Number and similarity of the source that is most alike; None where there is no other."""
    found = [(similarity(source, other), -number) for number, other in others]
    if not found:
        return None
    alike, number = max(found)
    return -number, alike
