"""Highlighted source and safe Markdown."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pygments
from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import CppLexer, CudaLexer, PythonLexer, TextLexer


@dataclass(frozen=True, kw_only=True)
class ShownFile:
    """One file of a submission; `anchor`, a hyphen and a number name a line of it on the page."""

    name: str
    text: str
    language: str
    anchor: str


register = template.Library()

_PLUS_MINUS = re.compile(r"(?<![\w`])\+-(?=\w)")

_LONGEST = 128 * 1024  # characters
_PATIENCE_S = 0.5
_LEXERS: dict[str, type[Lexer]] = {"cuda": CudaLexer, "cpp": CppLexer, "python": PythonLexer}
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


@register.filter
def highlighted(file: ShownFile) -> SafeString:
    """A file as HTML with token classes and a link for each line; the style sheet has colours."""
    return _highlight(file.text, file.language, prefix=file.anchor)


@register.filter
def highlight_plain(source: str, language: str) -> SafeString:
    """Source as HTML with token classes alone, for pages that show several sources."""
    return _highlight(source, language, prefix="")


@lru_cache(maxsize=64)
def _highlight(source: str, language: str, prefix: str) -> SafeString:
    formatter: HtmlFormatter[str] = HtmlFormatter(
        cssclass="code tall",
        linenos="inline" if prefix else False,
        lineanchors=prefix,
        anchorlinenos=bool(prefix),
        wrapcode=True,
    )
    html = pygments.format(_tokens(source, language), formatter)
    role = "region" if prefix else "group"  # of several on a page none is a landmark
    scrollable = f'<div tabindex="0" role="{role}" aria-label="Source code" class="code tall">'
    return SafeString(html.replace('<div class="code tall">', scrollable, 1))


def _tokens(source: str, language: str) -> list[tuple[Any, str]]:
    """Tokens, or the text as it is where finding them takes too long.

    The lexers' patterns take quadratic time on some texts, such as thousands of empty lines.
    """
    plain = list(TextLexer(stripnl=False).get_tokens(source))
    if len(source) > _LONGEST:
        return plain
    deadline = time.monotonic() + _PATIENCE_S
    tokens = []
    for token in _LEXERS.get(language, CppLexer)(stripnl=False).get_tokens(source):
        if time.monotonic() > deadline:
            return plain
        tokens.append(token)
    return tokens


@register.filter
def markdown(text: str) -> SafeString:
    """Markdown as HTML; markup of other kinds in it is shown as text.

    A task's own text can't be edited, because its digest covers it, so `+-` becomes ± here.
    """
    return SafeString(_MARKDOWN.render(_PLUS_MINUS.sub("±", text)))


@register.filter
def with_code(text: str) -> SafeString:
    """A text in which what stands between backticks is code; no other markup counts."""
    forms = itertools.cycle(("{}", "<code>{}</code>"))
    return SafeString("".join(map(format_html, forms, text.split("`"))))


@register.filter
def link_lines(log: str, files: Sequence[ShownFile]) -> SafeString:
    """A compiler's log in which the places in the kernel's files are links to their lines."""
    anchors = {file.name: file.anchor for file in files}
    names = "|".join(map(re.escape, sorted(anchors, key=len, reverse=True)))
    parts = []
    end = 0
    for match in re.finditer(rf"(?<![\w-])({names})[:(](\d+)", log):
        place = format_html('<a href="#{}-{}">{}</a>', anchors[match[1]], match[2], match[0])
        parts.append(format_html("{}{}", log[end : match.start()], place))
        end = match.end()
    parts.append(format_html("{}", log[end:]))
    return SafeString("".join(parts))
