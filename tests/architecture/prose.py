"""Measures the prose of a Markdown document: sentences, lines, links and anchors.

`python -m tests.architecture.prose FILE...` prints the figures, and what is too long.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MEAN_WORDS = 20
MOST_WORDS = 35
COLUMNS = 100

_FENCE = re.compile(r"^ *```.*?^ *```[^\n]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"`[^`]+`")
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +")
_END = re.compile(r"(?<=[.!?])[)\"*_]* +(?=[\"(*_]*[A-Z0-9`])")
_NO_END = re.compile(r"\b(?:e\.g|i\.e|etc|vs|Fig|No|St)\.$")
_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class Prose:
    """The sentences of one document: running text, and the cells of tables."""

    running: tuple[str, ...]
    cells: tuple[str, ...]

    @property
    def mean_words(self) -> float:
        """Words of a sentence of running text, on average."""
        counts = [words(sentence) for sentence in self.running]
        return sum(counts) / max(len(counts), 1)

    @property
    def too_long(self) -> tuple[str, ...]:
        """Sentences of more than `MOST_WORDS` words, wherever they stand."""
        return tuple(s for s in (*self.running, *self.cells) if words(s) > MOST_WORDS)


def words(sentence: str) -> int:
    """How many words a sentence has; what has no letter or digit is none."""
    return sum(bool(_WORD.search(word)) for word in sentence.split())


def measured(markdown: str) -> Prose:
    """The sentences of a document. Code counts as one word, a link as its text."""
    running: list[str] = []
    cells: list[str] = []
    for block in _blocks(markdown):
        table = block.startswith("|")
        for part in block.strip("|").split(" | ") if table else (block,):
            (cells if table else running).extend(_sentences(part))
    return Prose(tuple(running), tuple(cells))


def wide_lines(markdown: str) -> Iterator[tuple[int, str]]:
    """Lines beyond `COLUMNS`, with their numbers; tables and lines of one address are excepted."""
    for number, line in enumerate(markdown.splitlines(), 1):
        wide = len(line) > COLUMNS and not line.lstrip().startswith("|")
        if wide and not re.search(r"https?://\S{60,}", line):
            yield number, line


def links(markdown: str) -> list[str]:
    """Targets of the links and pictures of a document, without what stands in code."""
    text = _CODE.sub("", _FENCE.sub("", markdown))
    return [target for _, target in _LINK.findall(text)]


def anchors(markdown: str) -> set[str]:
    """What a link may name behind `#`, as GitHub makes it of the headings."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", markdown)):
        plain = _LINK.sub(r"\1", heading).replace("`", "").lower().strip()
        base = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 1
        anchor = base
        while anchor in found:
            anchor, number = f"{base}-{number}", number + 1
        found.add(anchor)
    return found


def _blocks(markdown: str) -> Iterator[str]:
    """Paragraphs, items of lists and rows of tables, each on one line; headings are left out."""
    text = _COMMENT.sub("", _FENCE.sub("\n", markdown))
    text = _LINK.sub(r"\1", _CODE.sub("Code", text))
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        starts = _ITEM.match(line) or line.startswith(("|", "#")) or not line.strip()
        if starts and block:
            yield " ".join(block)
            block = []
        if line.strip() and not line.startswith("#") and not set(line) <= set("|-: "):
            block.append(_ITEM.sub("", line).strip())


def _sentences(block: str) -> Iterator[str]:
    rest = ""
    for part in _END.split(block):
        rest = f"{rest} {part}".strip()
        if not _NO_END.search(rest):
            if words(rest):
                yield rest
            rest = ""
    if words(rest):
        yield rest


def main(names: list[str]) -> None:
    """Print the figures of some documents."""
    for name in names:
        text = Path(name).read_text()
        prose = measured(text)
        print(f"{name}: {len(text.split())} words, {prose.mean_words:.1f} a sentence")
        for sentence in prose.too_long:
            print(f"  {words(sentence)} words: {sentence}")
        for number, line in wide_lines(text):
            print(f"  line {number}: {len(line)} columns: {line[:60]}")


if __name__ == "__main__":
    main(sys.argv[1:])
