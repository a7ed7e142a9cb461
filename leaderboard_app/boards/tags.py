"""The cells of a matrix."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard_app.boards.matrix import Cell
from tasks_app.templatetags.display import ratio

register = template.Library()

_NOBODY = UUID(int=0)
"""In place of a submission's key in its address, which is looked up once for a row."""
_SOLVED = '<{tag} class="{}"><a href="{}?evaluation={}">{}{}</a></{tag}>'
_NOT_BEST = '<span aria-hidden="true">*</span><span class="visually-hidden"> vs {}</span>'
_ATTEMPTED = (
    '<{tag} class="failed"><span aria-hidden="true">✗</span>'
    '<span class="visually-hidden">attempted, not solved</span></{tag}>'
)
_NOT_ATTEMPTED = SafeString(
    '<td class="none"><span class="visually-hidden">not attempted</span></td>'
)


@register.simple_tag
def matrix_cells(cells: Iterable[Cell], tag: str = "td") -> SafeString:
    """A row of a matrix: of thousands of cells in its template a page took twice as long."""
    anywhere = reverse("submission", args=[_NOBODY])
    return SafeString("".join(_cell(cell, anywhere, tag) for cell in cells))


def _cell(cell: Cell, anywhere: str, tag: str) -> SafeString:
    entry = cell.entry
    if entry is None:
        return format_html(_ATTEMPTED, tag=tag) if cell.attempted else _NOT_ATTEMPTED
    words = ratio(entry.rated.value) if entry.rated else "?"
    address = anywhere.replace(str(_NOBODY), entry.submission_id)
    against = entry.compared_with
    note = format_html(_NOT_BEST, against) if against not in ("", "best") else ""
    return format_html(_SOLVED, cell.shade, address, entry.evaluation_id, words, note, tag=tag)
