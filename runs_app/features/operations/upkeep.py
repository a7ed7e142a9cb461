"""What the site does by itself every few seconds to stay in order."""

from __future__ import annotations

from datetime import datetime

from django.core.cache import cache
from django.db import connection

from runs_app.features.operations import disk, emptying

EVERY_S = 24 * 3600
"""Tables change slowly, and each time it takes eight seconds with a million evaluations."""


def look_after(*, now: datetime) -> None:
    """Warn of a disk that fills up, go on with queues that are being emptied, count in tables."""
    disk.warn()
    emptying.take_up(now=now)
    gather_statistics()


def gather_statistics() -> None:
    """Have SQLite count in its indexes, without which it reads large tables by the wrong one.

    All of them are read: with a sample it takes worse indexes than without any statistics. Nobody
    writes meanwhile, so a process that starts again does not do it again.
    """
    if connection.vendor != "sqlite" or not cache.add("statistics", 1, timeout=EVERY_S):
        return
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
