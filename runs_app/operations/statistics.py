"""What SQLite must be told about its tables; PostgreSQL looks at its own."""

from __future__ import annotations

from django.db import connection

EVERY_S = 24 * 3600.0
"""Tables change slowly, and each time it takes some seconds for a million evaluations."""


def gather_statistics() -> None:
    """Have SQLite count in its indexes, without which it reads large tables by the wrong one.

    All of them are read: with a sample it takes worse indexes than without any statistics.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
