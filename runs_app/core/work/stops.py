"""What the site tells everybody, and what it takes from nobody for a while."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from runs_app.core.errors import Stopped
from runs_app.models import Announcement

Kind = Announcement.Kind

WORDS = {Kind.SUBMISSIONS: "isn't accepting submissions now", Kind.RUNS: "isn't starting runs now"}
"""What the site does while a stop is in force."""


def in_force(now: datetime) -> QuerySet[Announcement]:
    """What counts at `now`, newest first."""
    return Announcement.objects.filter(Q(until=None) | Q(until__gt=now), ended_at=None)


def check_open(kind: Announcement.Kind, now: datetime) -> None:
    """Raise `Stopped` if an admin has stopped this."""
    stop = in_force(now).filter(kind=kind).first()
    if stop is not None:
        until = f" (until {stop.until:%Y-%m-%d %H:%M} UTC)" if stop.until else ""
        raise Stopped("", f"this site {WORDS[kind]}: {stop.text}{until}")
