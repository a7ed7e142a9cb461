"""What SQLite must be told about its tables; PostgreSQL looks at its own."""

from __future__ import annotations

from django.core.cache import cache
from django.db import connection

EVERY_S = 24 * 3600
"""Tables change slowly, and each time it takes eight seconds with a million evaluations."""


def gather_statistics() -> None:
    """Have SQLite count in its indexes, without which it reads large tables by the wrong one.

    All of them are read: with a sample it takes worse indexes than without any statistics. Nobody
    writes meanwhile, so a process that starts again does not do it again.
    """
    if connection.vendor != "sqlite" or not cache.add("statistics", 1, timeout=EVERY_S):
        return
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
