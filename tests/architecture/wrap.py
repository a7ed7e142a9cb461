"""Wraps the prose of Markdown files at the columns that the tests allow.

`python -m tests.architecture.wrap FILE...`; tables, blocks of code and headings stay as they are.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

from tests.architecture.prose import COLUMNS

_ITEM = re.compile(r"^( *)((?:[-*]|\d+\.) +)(.*)$")
_CODE = re.compile(r"`[^`]*`")
_AS_IT_IS = ("|", "#", "<!--", "```")
_GLUE = "\0"
"""Stands for a blank inside code, where a line may not end."""


def wrapped(markdown: str) -> str:
    """The document with each paragraph and item of a list filled."""
    done: list[str] = []
    block: list[str] = []
    in_code = False
    for line in [*markdown.splitlines(), ""]:
        fence = line.lstrip().startswith("```")
        apart = in_code or fence or not line.strip() or line.startswith(_AS_IT_IS)
        if apart or _ITEM.match(line):
            done += _filled(block)
            block = []
        if apart:
            done.append(line)
        else:
            block.append(line)
        in_code ^= fence
    return "\n".join(done).rstrip() + "\n"


def _filled(block: list[str]) -> list[str]:
    if not block:
        return []
    item = _ITEM.match(block[0])
    indent, mark, first = item.groups() if item else ("", "", block[0].strip())
    text = " ".join([first, *(line.strip() for line in block[1:])])
    lines = textwrap.wrap(
        _CODE.sub(lambda code: code.group().replace(" ", _GLUE), text),
        COLUMNS - 2,
        initial_indent=indent + mark,
        subsequent_indent=indent + " " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]


def main(names: list[str]) -> None:
    """Wrap these files."""
    for name in names:
        path = Path(name)
        path.write_text(wrapped(path.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
