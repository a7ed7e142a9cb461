"""What stands above every page while it is in force, what warns admins, and upkeep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import DatabaseError
from django.dispatch import receiver
from django.template.context import Context
from django.utils import timezone

from runs_app.core.hooks import Filling, Slot, fills, heartbeat, tick
from runs_app.core.work.limits import in_force
from runs_app.features.operations import readings, upkeep
from runs_app.features.operations.disk import low_disk
from runs_app.models import Runner
from tasks_app.disclosure import sees_hidden

_MOST = 5


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
    return Filling("operations/parts/link.html", {}) if context["user"].is_staff else None


@receiver(heartbeat)
def _record(
    sender: object, runner: Runner, sensors: Mapping[str, float], now: datetime, **_: object
) -> None:
    """Keep what its sensors say."""
    readings.record(runner, sensors, now)


@receiver(tick)
def _look_after(sender: object, now: datetime, **_: object) -> None:
    """Keep the site in order."""
    upkeep.look_after(now=now)
