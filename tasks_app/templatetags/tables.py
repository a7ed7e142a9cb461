"""Draws the head and the body of a table from the declaration of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from django import template
from django.template.context import Context
from django.utils.html import conditional_escape, format_html, strip_tags
from django.utils.safestring import SafeString

from tasks_app.columns import Column, Table

register = template.Library()


@register.inclusion_tag("tasks_app/table.html", takes_context=True)
def table(
    context: Context, columns: Table, rows: Iterable[Any], sort: str = "", best: object = ""
) -> dict[str, object]:
    """Head and body. `sort` is the current order; `best` marks rows of rank 1.

    A column that says the same in every row is left out, and `same` says it once, above the heads.
    Cells are put together here, because a template for each of a thousand cells takes too long.
    """
    page = cast(dict[str, object], context.flatten())
    rows = list(rows)
    filled = [(each, [_cell(each, row, context) for row in rows]) for each in columns.shown(page)]
    same = [each for each in filled if _repeats(*each, sort)]
    shown = [each for each in filled if each not in same]
    heads = [
        (each, _rendered(each.drawn_head, context) if each.drawn_head else _words(each, page))
        for each, _ in shown
    ]
    tags = [_tags(each, _words(each, page)) for each, _ in shown]
    lines = [
        (
            best and row.rank == 1,
            SafeString(
                "".join(
                    f"{start}{cells[place]}{end}"
                    for (start, end), (_, cells) in zip(tags, shown, strict=True)
                )
            ),
        )
        for place, row in enumerate(rows)
    ]
    said = [(_words(each, page), SafeString(cells[0])) for each, cells in same]
    known = [(head, cell) for head, cell in said if strip_tags(cell).strip() not in ("", "–")]
    return {"heads": heads, "lines": lines, "sort": sort, "same": known}


def _repeats(column: Column, cells: Sequence[str], sort: str) -> bool:
    """Whether a column reads the same in every row, and isn't what the rows are ordered by."""
    if len(cells) < 2 or column.is_name or (sort and column.sort == sort):
        return False
    first = _read(cells[0])
    return all(cell == cells[0] or _read(cell) == first for cell in cells)


def _read(cell: str) -> str:
    return cell if "<svg" in cell else strip_tags(cell)


def _words(column: Column, page: dict[str, object]) -> str:
    return column.head if isinstance(column.head, str) else column.head(page)


def _tags(column: Column, words: str) -> tuple[str, str]:
    """The tags around a column's cells; a name is the header of its row."""
    if column.is_name:
        return '<th scope="row">', "</th>"
    classes = format_html(' class="{}"', column.classes) if column.classes else ""
    return format_html('<td{} data-label="{}">', classes, words), "</td>"


def _cell(column: Column, row: object, context: Context) -> str:
    part = column.row_of(row)
    value = column.value_of(part)
    if isinstance(column.cell, str):
        return _rendered(column.cell, context, row=part, value=value)
    return conditional_escape(cast(str, column.cell(value)))


def _rendered(name: str, context: Context, **values: object) -> SafeString:
    assert context.template is not None
    with context.push(**values):
        return SafeString(context.template.engine.get_template(name).render(context).strip())
