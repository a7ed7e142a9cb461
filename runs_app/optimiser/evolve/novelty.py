"""How much of one source is in another: shared runs of tokens, no embedding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

SHINGLE = 5  # tokens

_TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\w+|[^\w\s]", re.DOTALL)


@lru_cache(maxsize=2048)
def shingles(source: str) -> frozenset[int]:
    """Hashes of all runs of `SHINGLE` tokens; comments and layout do not count."""
    tokens = [t for t in _TOKEN.findall(source) if not t.startswith(("//", "/*"))]
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
