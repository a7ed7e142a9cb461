"""Declares a table's columns once, for its page, its files and the API's schema."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, cast

from pydantic import BaseModel, Field, create_model

from tasks_app.spreadsheet import as_csv

Record = dict[str, object]

_attribute = cache(attrgetter)

MIDDLE = (("", "value"),)
"""The kind of an estimate whose value alone is in files and the API."""
BOUNDS = (("", "value"), ("_low", "low"), ("_high", "high"))
"""The kind of an estimate that gets a field for its value and one for each end of its interval."""


@dataclass(frozen=True)
class Column:
    """What a column takes from a row, and where and how it is shown.

    Files and the API have it under the name `field`, and pages under `head`. If one of these names
    is empty, the column isn't shown there.
    """

    field: str
    kind: Any = str
    head: str | Callable[[Mapping[str, Any]], str] = ""  # or a function of the page's variables
    cell: str | Callable[[Any], object] = str  # a template with `row` and `value`, or a filter
    _: KW_ONLY
    value: str | Callable[[Any], object] = ""  # an attribute of the row; `field` if left out
    is_always: bool = False  # whether every row has its estimate
    inner: str = ""  # the row's attribute that holds all this
    help: str = ""
    term: str = ""  # the glossary's word that explains the head, or its `sub`
    sub: str = ""
    drawn_head: str = ""  # a template for the head, instead of words
    classes: str = "n"
    is_name: bool = False
    sort: str = ""
    direction: str = "descending"
    after: str = ""  # the field or head that it follows on the page
    when: Callable[[Mapping[str, Any]], object] = bool

    def row_of(self, row: object) -> object:
        """The part of a row that this column is about."""
        return _attribute(self.inner)(row) if self.inner else row

    def value_of(self, part: object) -> Any:
        """The column's value in that part."""
        return (self.value if callable(self.value) else _attribute(self.value or self.field))(part)

    def fields(self) -> dict[str, tuple[object, object]]:
        """The type and description of each field in files and the API, by name."""
        is_moment, is_parted = self.kind is datetime, isinstance(self.kind, tuple)
        number = float if self.is_always else float | None
        kind = str if is_moment else number if is_parted else self.kind
        extra: dict[str, Any] = {"format": "date-time"} if is_moment else {}
        about = Field(description=self.help or None, json_schema_extra=extra)
        names = [self.field + end for end, _ in self.kind] if is_parted else [self.field]
        return {name: (kind, about) for name in names if name}

    def record(self, row: object) -> Record:
        """The value of each of these fields; times are in ISO 8601."""
        value = self.value_of(self.row_of(row)) if self.field else None
        if isinstance(self.kind, tuple):
            return {self.field + end: getattr(value, name, None) for end, name in self.kind}
        if isinstance(value, datetime):
            value = value.isoformat()
        return {self.field: value} if self.field else {}


class Table:
    """Columns in the order of files and the API; `name` is what the API's schema calls a row."""

    def __init__(self, name: str, columns: Iterable[Column]) -> None:
        """Make the table, and the schema of its rows, from these columns."""
        self.name, self.columns = name, tuple(columns)
        fields = {name: about for each in self.columns for name, about in each.fields().items()}
        self.fields = {name: kind for name, (kind, _) in fields.items()}
        self.schema: type[BaseModel] = create_model(name, **cast(dict[str, Any], fields))

    def record(self, row: object) -> Record:
        """A row as a flat record."""
        return {name: value for each in self.columns for name, value in each.record(row).items()}

    def csv(self, records: Iterable[Record]) -> str:
        """These records as CSV, with a header line."""
        return as_csv(list(records), list(self.fields))

    def only(self, names: Collection[str]) -> Table:
        """A table of these fields alone, without the ends of intervals."""
        kept = [each for each in self.columns if each.field in names]
        return Table(
            f"Brief{self.name}",
            [replace(each, kind=MIDDLE) if each.kind == BOUNDS else each for each in kept],
        )

    def showing(self, words: Mapping[str, Mapping[str, Any]]) -> Table:
        """The same fields, but pages show only the columns in `words`, with these changes."""
        changed = (replace(each, **words.get(each.field, {"head": ""})) for each in self.columns)
        return Table(self.name, changed)

    def shown(self, page: Mapping[str, object]) -> list[Column]:
        """The columns that a page with these variables shows, in the page's order."""
        chosen = [each for each in self.columns if each.head and each.when(page)]

        def followed(column: Column) -> Iterator[Column]:
            yield column
            for each in chosen:
                if each.after and each.after in (column.field, column.head):
                    yield from followed(each)

        return [each for first in chosen if not first.after for each in followed(first)]
