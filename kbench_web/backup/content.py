"""What a database holds, so that a copy can be compared with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MIGRATIONS = "django_migrations"
_STATISTICS = "sqlite_"
"""SQLite's own tables: it may write them at any time."""


class BackupError(Exception):
    """A backup cannot be made or restored; the text says why, and what to do."""


@dataclass(frozen=True)
class Content:
    """How many rows each table has, and which migrations are applied ("runs_app.0001_initial")."""

    rows: Mapping[str, int]
    migrations: Sequence[str]


def content(cursor: Any, tables: Sequence[str]) -> Content:
    """What is in these tables.

    Call it in one transaction, or nobody may write between two tables.
    """
    rows = {}
    for table in tables:
        if table.startswith(_STATISTICS):
            continue
        cursor.execute(f'SELECT count(*) FROM "{table}"')  # noqa: S608 - the database's own name
        rows[table] = int(cursor.fetchone()[0])
    if MIGRATIONS not in tables:
        return Content(rows, ())
    cursor.execute(f"SELECT app, name FROM {MIGRATIONS} ORDER BY app, name")  # noqa: S608
    return Content(rows, [f"{app}.{name}" for app, name in cursor.fetchall()])
