"""Copies of SQLite, by its own backup: a snapshot, for which no writer has to wait."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from django.db import connection

from kbench_web.backup.archive import BackupError, Content, content


def dump(target: Path) -> Content:
    """Copy the database into a new file; what the copy holds."""
    connection.ensure_connection()
    with contextlib.closing(sqlite3.connect(target)) as copy:
        connection.connection.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # else the copy would be several files
        return _content(copy)


def load(source: Path) -> None:
    """Replace all that is in the database by a copy, in one transaction; for its owner alone."""
    with contextlib.closing(sqlite3.connect(source)) as copy:
        fault = copy.execute("PRAGMA integrity_check").fetchone()[0]
        if fault != "ok":
            raise BackupError(f"the database in it is damaged: {fault}; use another backup")
        own = Path(str(connection.settings_dict["NAME"]))
        if own.parent.is_dir():  # it's a file
            own.touch(mode=0o600)
            own.chmod(0o600)
        connection.ensure_connection()
        copy.backup(connection.connection)
    connection.close()


def others() -> int:
    """How many other programs use the database; SQLite cannot say."""
    return 0


def _content(copy: sqlite3.Connection) -> Content:
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    tables = [name for (name,) in copy.execute(query)]
    return content(copy.cursor(), tables)
