"""Draws the head and the body of a table from the declaration of its columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django import template
from django.template.context import Context
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

from tasks_app.columns import Column, Table

register = template.Library()


@register.inclusion_tag("tasks_app/table.html", takes_context=True)
def table(
    context: Context, columns: Table, rows: Iterable[Any], sort: str = "", best: object = ""
) -> dict[str, object]:
    """Head and body. `sort` is the current order; `best` marks rows of rank 1.

    Cells are put together here, because a template for each of a thousand cells takes too long.
    """
    page = cast(dict[str, object], context.flatten())
    shown = [(each, _words(each, page)) for each in columns.shown(page)]
    heads = [
        (each, _rendered(each.drawn_head, context) if each.drawn_head else words)
        for each, words in shown
    ]
    tags = [(each, *_tags(each, words)) for each, words in shown]
    lines = [
        (
            best and row.rank == 1,
            SafeString("".join(f"{start}{_cell(c, row, context)}{end}" for c, start, end in tags)),
        )
        for row in rows
    ]
    return {"heads": heads, "lines": lines, "sort": sort}


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
