"""Highlighted source and safe Markdown."""

from __future__ import annotations

import re

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from pygments import highlight as pygments_highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import CppLexer, CudaLexer, PythonLexer

register = template.Library()

_LEXERS: dict[str, type[Lexer]] = {"cuda": CudaLexer, "cpp": CppLexer, "python": PythonLexer}
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
_PLACE = re.compile(r"(kernel\.(?:cu|cpp))[:(](\d+)")


@register.filter
def highlight(source: str, language: str) -> SafeString:
    """Source as HTML with token classes and a link for each line; the style sheet has colours."""
    return _highlight(source, language, prefix="L")


@register.filter
def highlight_plain(source: str, language: str) -> SafeString:
    """Source as HTML with token classes alone, for pages that show several sources."""
    return _highlight(source, language, prefix="")


def _highlight(source: str, language: str, prefix: str) -> SafeString:
    formatter: HtmlFormatter[str] = HtmlFormatter(
        cssclass="code tall",
        linenos="inline" if prefix else False,
        lineanchors=prefix,
        anchorlinenos=bool(prefix),
        wrapcode=True,
    )
    lexer = _LEXERS.get(language, CppLexer)(stripnl=False)
    html = pygments_highlight(source, lexer, formatter)
    scrollable = '<div tabindex="0" role="region" aria-label="Source" class="code tall">'
    return SafeString(html.replace('<div class="code tall">', scrollable, 1))


@register.filter
def markdown(text: str) -> SafeString:
    """Markdown as HTML; markup of other kinds in it is shown as text."""
    return SafeString(_MARKDOWN.render(text))


@register.filter
def link_lines(log: str) -> SafeString:
    """A compiler's log in which the places in the kernel's source are links to its lines."""
    parts = []
    end = 0
    for match in _PLACE.finditer(log):
        place = format_html('<a href="#L-{}">{}</a>', match[2], match[0])
        parts.append(format_html("{}{}", log[end : match.start()], place))
        end = match.end()
    parts.append(format_html("{}", log[end:]))
    return SafeString("".join(parts))
