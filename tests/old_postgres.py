"""Puts a database that was kept as one of SQLite into PostgreSQL, as it was before.

`python -m tests.old_postgres FILE` fills the empty database of the environment's settings from an
SQLite file: it migrates as far as the file was migrated, and copies every row.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from django.db.backends.utils import CursorWrapper
    from django.db.migrations.loader import MigrationLoader

Key = tuple[str, str]
"""An app and the name of a migration of it."""


@contextmanager
def new_database(server: str, name: str) -> Iterator[str]:
    """The URL of a new, empty database on the server of a URL; it goes when the context ends."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def last_of(applied: list[Key], loader: MigrationLoader) -> list[Key]:
    """The last migration of each app, or the one of today that stands for it."""
    on_disk = loader.disk_migrations
    instead = {tuple(old): key for key, each in on_disk.items() for old in each.replaces}
    last = [(app, name) for app, name in dict(applied).items()]
    return [key if key in on_disk else instead[key] for key in last]


def copy(old: sqlite3.Connection, table: str, cursor: CursorWrapper) -> None:
    """Replace a table's rows by the old ones; PostgreSQL reads each value from its text."""
    rows = old.execute(f'SELECT * FROM "{table}"')
    columns = [description[0] for description in rows.description]
    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join(["%s"] * len(columns))
    cursor.executemany(
        f'INSERT INTO "{table}" ({names}) VALUES ({marks})',
        [[None if value is None else str(value) for value in row] for row in rows],
    )
    if "id" in columns:
        cursor.execute(
            f"SELECT setval(pg_get_serial_sequence('\"{table}\"', 'id'), max(id::text::bigint))"
            f" FROM \"{table}\" WHERE pg_get_serial_sequence('\"{table}\"', 'id') IS NOT NULL"
            " HAVING max(id::text::bigint) > 0"
        )


def main() -> None:
    """Fill the database of the environment's settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbench_web.settings")
    import django

    django.setup()
    from django.db import connection, transaction
    from django.db.migrations.executor import MigrationExecutor

    old = sqlite3.connect(sys.argv[1])
    applied: list[Any] = old.execute(
        "SELECT app, name FROM django_migrations ORDER BY id"
    ).fetchall()
    executor = MigrationExecutor(connection)
    executor.loader.replace_migrations = False  # the steps, not what makes today's tables at once
    executor.loader.build_graph()
    executor.migrate(last_of(applied, executor.loader))
    found = old.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    )
    tables = [name for (name,) in found]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("TRUNCATE " + ", ".join(f'"{name}"' for name in tables))
        for table in tables:
            copy(old, table, cursor)


if __name__ == "__main__":
    main()
