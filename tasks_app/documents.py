"""The documents under `docs/` as pages: their HTML, their sections, and the words they explain.

Links between documents lead to pages of the site; a link to a file that is no page is text.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

FOLDER = Path(settings.BASE_DIR) / "docs"
GLOSSARY = "glossary"
_LONGEST_NAME = 100
_NAME = re.compile(r"[\w-]+(/[\w-]+)*")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
_RENDERER = RendererHTML()
_SCROLLABLE = '<div class="table-wrap" tabindex="0" role="region" aria-label="Table {}"><table>'


@dataclass(frozen=True)
class Section:
    """A part of a document below one heading."""

    anchor: str
    """What a link to it has behind `#`; empty for what stands before the first heading."""
    heading: str
    level: int
    """Rank of the heading, from 1."""
    text: str
    """Its words, without markup."""


@dataclass(frozen=True)
class Document:
    """A page of the documents."""

    name: str
    """Path below `docs/`, without `.md`."""
    title: str
    html: str
    """Everything but the title."""
    sections: tuple[Section, ...]

    @property
    def address(self) -> str:
        """Address of its page."""
        return reverse("document", args=[self.name])

    @property
    def parts(self) -> list[Section]:
        """The sections right below its title."""
        return [section for section in self.sections if section.level == 2]


def document_names() -> list[str]:
    """Every document by its path below `docs/`, without `.md`."""
    paths = (path.relative_to(FOLDER).with_suffix("") for path in FOLDER.rglob("*.md"))
    return sorted(str(path) for path in paths)


def find_document(name: str) -> Document | None:
    """The document of this name, or None."""
    if not _is_document(name):
        return None
    return _read(name, (FOLDER / f"{name}.md").stat().st_mtime_ns)


def document_text(name: str) -> str | None:
    """The document of this name as Markdown, or None."""
    return (FOLDER / f"{name}.md").read_text() if _is_document(name) else None


def documents() -> list[Document]:
    """All documents."""
    return [found for name in document_names() if (found := find_document(name)) is not None]


def terms() -> dict[str, str]:
    """Words of the glossary, as they are written there, with their meaning as HTML."""
    path = FOLDER / f"{GLOSSARY}.md"
    return _terms(path.stat().st_mtime_ns)


def _is_document(name: str) -> bool:
    is_name = len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None
    return is_name and (FOLDER / f"{name}.md").is_file()


@lru_cache(maxsize=256)
def _read(name: str, _changed_ns: int) -> Document:
    tokens = _MARKDOWN.parse((FOLDER / f"{name}.md").read_text())
    sections = _with_anchors(tokens)
    _lead_to_pages(tokens, name)
    title = next((section.heading for section in sections if section.level == 1), name)
    body = tokens[3:] if tokens and tokens[0].tag == "h1" else tokens
    html = _MARKDOWN.renderer.render(body, _MARKDOWN.options, {})
    numbers = itertools.count(1)
    html = re.sub("<table>", lambda _: _SCROLLABLE.format(next(numbers)), html)
    html = html.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')
    return Document(name, title, html, tuple(sections))


def _with_anchors(tokens: Sequence[Token]) -> list[Section]:
    """Sections of a document, whose headings get the anchors by which links name them."""
    found: list[Section] = []
    anchors: set[str] = set()
    anchor, heading, level = "", "", 0
    words: list[str] = []
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            if words or heading:
                found.append(Section(anchor, heading, level, " ".join(words)))
            heading, level, words = _words(tokens[place + 1]), int(token.tag[1]), []
            anchor = _anchor(heading, anchors)
            token.attrSet("id", anchor)
        elif token.type in ("inline", "fence", "code_block"):
            is_heading = place > 0 and tokens[place - 1].type == "heading_open"
            words += [] if is_heading else [_words(token)]
    return [*found, Section(anchor, heading, level, " ".join(words))]


def _anchor(heading: str, taken: set[str]) -> str:
    """What a link may name behind `#`, as GitHub makes it of a heading."""
    base = re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-")
    anchor, number = base, 1
    while anchor in taken:
        anchor, number = f"{base}-{number}", number + 1
    taken.add(anchor)
    return anchor


def _words(token: Token) -> str:
    """The text of a block, without markup and line ends."""
    breaks = ("softbreak", "hardbreak")
    parts = [" " if child.type in breaks else child.content for child in token.children or [token]]
    return re.sub(r"\s+", " ", "".join(parts)).strip()


def _lead_to_pages(tokens: Sequence[Token], name: str) -> None:
    """Links to other documents become links to their pages; those to other files go."""
    for token in tokens:
        if token.children:
            token.children = list(_led(token.children, name))


def _led(children: Sequence[Token], name: str) -> Iterator[Token]:
    kept = True
    for child in children:
        if child.type == "link_open":
            target = _target(str(child.attrGet("href") or ""), name)
            kept = bool(target)
            child.attrSet("href", target)
        if kept or child.type not in ("link_open", "link_close"):
            yield child
        kept = kept or child.type == "link_close"


def _target(href: str, name: str) -> str:
    """Where a link of a document leads on the site; empty for a file that is no page."""
    if "://" in href or href.startswith(("#", "mailto:")):
        return href
    path, _, anchor = href.partition("#")
    place = posixpath.normpath(posixpath.join(posixpath.dirname(name), path.removesuffix(".md")))
    if not path.endswith(".md") or not _is_document(place):
        return ""
    return reverse("document", args=[place]) + (f"#{anchor}" if anchor else "")


@lru_cache(maxsize=2)
def _terms(_changed_ns: int) -> dict[str, str]:
    tokens = _MARKDOWN.parse((FOLDER / f"{GLOSSARY}.md").read_text())
    _lead_to_pages(tokens, GLOSSARY)
    found: dict[str, str] = {}
    for word, meaning in _two_columns(tokens):
        html = _RENDERER.renderInline(meaning.children or [], _MARKDOWN.options, {})
        for each in _words(word).split(", "):
            found.setdefault(each, html)
    return found


def _two_columns(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Cells of the tables with two columns: a word and its meaning."""
    row: list[Token] = []
    for token, following in itertools.pairwise(tokens):
        if token.type == "tr_open":
            row = []
        elif token.type == "td_open":
            row.append(following)
        elif token.type == "tr_close" and len(row) == 2:
            yield row[0], row[1]
