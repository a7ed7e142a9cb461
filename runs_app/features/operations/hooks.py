"""What stands above every page while it is in force, what warns admins, and upkeep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.core.cache import cache
from django.db import DatabaseError, connection
from django.dispatch import receiver
from django.template.context import Context
from django.utils import timezone

from runs_app.core.hooks import Filling, Slot, fills, heartbeat, tick
from runs_app.core.work.limits import in_force
from runs_app.features.operations import disk, emptying, readings
from runs_app.features.operations.disk import low_disk
from runs_app.models import Runner
from tasks_app.disclosure import sees_hidden

_MOST = 5
_EVERY_S = 24 * 3600
"""Tables change slowly, and each time it takes eight seconds with a million evaluations."""


@fills(Slot.BANNERS)
def _banners(context: Context) -> Filling | None:
    """The announcements in force; none where the database says nothing."""
    try:
        announcements = list(in_force(timezone.now())[:_MOST])
    except DatabaseError:  # a page of errors must not fail for it
        return None
    return Filling("operations/parts/banners.html", {"announcements": announcements})


@fills(Slot.QUEUE)
def _low_disk(context: Context) -> Filling | None:
    """For admins: how much room is left on the disk, if it is too little."""
    disk = low_disk() if sees_hidden(context["user"]) else None
    return Filling("operations/parts/low_disk.html", {"disk": disk}) if disk else None


@fills(Slot.HEADER)
@fills(Slot.CRUMBS)
def _link(context: Context) -> Filling | None:
    """Leads admins to the page on which they steer the site."""
    if not context["user"].is_staff:
        return None
    return Filling("operations/parts/link.html", {"request": context["request"]})


@receiver(heartbeat)
def _record(
    sender: object, runner: Runner, sensors: Mapping[str, float], now: datetime, **_: object
) -> None:
    """Keep what its sensors say."""
    readings.record(runner, sensors, now)


@receiver(tick)
def look_after(sender: object, now: datetime, **_: object) -> None:
    """Warn of a disk that fills up, go on with queues that are being emptied, count in tables."""
    disk.warn()
    emptying.take_up(now=now)
    gather_statistics()


def gather_statistics() -> None:
    """Have SQLite count in its indexes, without which it reads large tables by the wrong one.

    All of them are read: with a sample it takes worse indexes than without any statistics. Nobody
    writes meanwhile, so a process that starts again does not do it again.
    """
    if connection.vendor != "sqlite" or not cache.add("statistics", 1, timeout=_EVERY_S):
        return
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
