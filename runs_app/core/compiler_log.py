"""A compiler's log as somebody reads it who writes the kernel: its first errors, each once."""

from __future__ import annotations

import re
from collections import Counter

_CHARACTERS = 2_500  # chosen: some thirty lines; the first errors explain the rest
_LINE = 300  # chosen: characters of a line; templates' types are longer
_MARK = re.compile(r"\berror\b|undefined reference|required symbol|^the task ", re.IGNORECASE)


def first_errors(log: str) -> str:
    """A log from its first error on, and no more than a screen of it."""
    lines = [line[:_LINE] for line in each_error_once(log.strip()).splitlines()]
    first = next((place for place, line in enumerate(lines) if _MARK.search(line)), 0)
    start = max(first - 1, 0)  # the line before says in which function it is
    kept: list[str] = []
    for line in lines[start:]:
        if sum(len(each) + 1 for each in kept) + len(line) > _CHARACTERS:
            break
        kept.append(line)
    left = len(lines) - start - len(kept)
    return "\n".join([*kept, *([f"... {left} more lines; raw shows all"] if left > 0 else ())])


def each_error_once(log: str) -> str:
    """A compiler's log without what it repeats for other instantiations of a template.

    nvcc parts errors by empty lines, and begins each with a line that says all but the types.
    """
    blocks = [block for block in log.split("\n\n") if block.strip()]
    heads = [block.strip("\n").partition("\n")[0] for block in blocks]
    times, shown = Counter(heads), []
    for head, block in zip(heads, blocks, strict=True):
        if count := times.pop(head, 0):
            again = f"\n(the same {count - 1} more times)" if count > 1 else ""
            shown.append(block.strip("\n") + again)
    return "\n\n".join(shown)
