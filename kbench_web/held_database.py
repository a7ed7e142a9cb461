"""Keeps SQLite readable on a full disk: the web server holds a connection open that nobody uses.

The last process that leaves the database removes the file through which readers find what was
written (`-shm`). The next one has to make it again, which a full disk does not allow.
"""

from __future__ import annotations

import functools
import sqlite3

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


def install() -> None:
    """Do so in this process, from its first query on; it must not fork afterwards."""
    connection_created.connect(_hold)


def _hold(*, connection: BaseDatabaseWrapper, **_: object) -> None:
    if connection.vendor == "sqlite":
        _held(str(connection.settings_dict["NAME"]))


@functools.cache
def _held(name: str) -> sqlite3.Connection:
    held = sqlite3.connect(name, uri=name.startswith("file:"), check_same_thread=False)
    held.execute("SELECT 1 FROM sqlite_master").fetchone()
    return held
