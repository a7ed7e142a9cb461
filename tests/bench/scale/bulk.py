"""Rows into a table by the hundred thousand, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Field, Model

_CHUNK = 5000


def insert(model: type[Model], rows: Iterable[Mapping[str, Any]]) -> int:
    """Store rows given by column name; what they lack is the field's default. Returns how many.

    All rows have the columns of the first. Keys that the database would draw are given.
    """
    waiting = iter(rows)
    first = next(waiting, None)
    if first is None:
        return 0
    fields = list(model._meta.concrete_fields)
    given = {field.attname: field for field in fields if field.attname in first}
    assert len(given) == len(first), set(first) - set(given)
    others = [field for field in fields if field.attname not in first]
    constants = [_stored(field, field.get_default()) for field in others]
    columns = [field.column for field in (*given.values(), *others)]
    with transaction.atomic():
        count = sum(
            _write(model._meta.db_table, columns, list(_values(chunk, given, constants)))
            for chunk in _chunks(first, waiting)
        )
    for statement in connection.ops.sequence_reset_sql(no_style(), [model]):
        with connection.cursor() as cursor:
            cursor.execute(statement)
    return count


def _chunks(
    first: Mapping[str, Any], rows: Iterator[Mapping[str, Any]]
) -> Iterator[list[Mapping[str, Any]]]:
    yield [first]
    while chunk := list(islice(rows, _CHUNK)):
        yield chunk


def _values(
    rows: Iterable[Mapping[str, Any]], given: Mapping[str, Field[Any, Any]], rest: Sequence[Any]
) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        yield (*(_stored(field, row[name]) for name, field in given.items()), *rest)


def _stored(field: Field[Any, Any], value: Any) -> Any:
    return field.get_db_prep_save(value, connection)


def _write(table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    names = ", ".join(f'"{column}"' for column in columns)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f'COPY "{table}" ({names}) FROM STDIN') as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            places = ", ".join(["%s"] * len(columns))
            cursor.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({places})', rows)
    return len(rows)
