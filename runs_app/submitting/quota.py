"""How much a user may still enter, and what goes beyond that, or beyond a stop, is refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from django.contrib.auth.models import User
from django.db.models import Count, Min, Q

from gpu_runner.data.queue import OF_PEOPLE
from gpu_runner.data.verdict import Mode
from runs_app.core.errors import QuotaExceeded
from runs_app.core.work.limits import check_open, limits_of
from runs_app.models import UNDER_WAY, Announcement, Evaluation, Status

EMPTIED = "an admin emptied the queue"
"""With this begins the reason of what was cancelled so."""

BUILDS_A_SUBMISSION = 10
"""Compile checks for each submission, of those in 24 hours as of those that wait at once. Chosen:
nobody who edits a kernel gets there, and a script that keeps the compilers busy all day does."""

_DAY = timedelta(days=1)
_A_JOB_S = 5  # chosen: in this time a quick evaluation ends, or a few compile checks


@dataclass(frozen=True)
class Quota:
    """A user's evaluations of the last 24 hours; `resets_at` is when one place comes free.

    Compile checks count toward none of these, and have wide limits of their own.
    why_waiting, why_daily: what to add to a refusal where that limit is not the usual one.
    """

    waiting: int  # queued or running now
    waiting_limit: int
    today: int  # entered within 24 hours
    daily_limit: int
    resets_at: datetime
    builds_reset_at: datetime
    builds_waiting: int = 0
    builds_today: int = 0
    why_waiting: str = ""
    why_daily: str = ""

    @property
    def remaining(self) -> int:
        """Submissions and re-runs left."""
        return max(self.daily_limit - self.today, 0)

    @property
    def builds_limits(self) -> tuple[int, int]:
        """Compile checks that wait or run at once, and those within 24 hours."""
        return self.waiting_limit * BUILDS_A_SUBMISSION, self.daily_limit * BUILDS_A_SUBMISSION


def quota(user: User, now: datetime) -> Quota:
    """What `user` has used, and what the limits are."""
    limits = limits_of(user, now)
    # nobody chooses to be audited, or to be measured again by the site
    own = Evaluation.objects.filter(Evaluation.waits_as(*OF_PEOPLE), submission__author=user)
    own = own.exclude(status=Status.CANCELLED, reason__startswith=EMPTIED)  # nobody's choice either
    waits, day, build = Q(status__in=UNDER_WAY), Q(created_at__gt=now - _DAY), Q(mode=Mode.COMPILE)
    used = own.filter(waits | day).aggregate(
        waiting=Count("pk", filter=waits & ~build),
        today=Count("pk", filter=day & ~build),
        oldest=Min("created_at", filter=day & ~build),
        builds_waiting=Count("pk", filter=waits & build),
        builds_today=Count("pk", filter=day & build),
        oldest_build=Min("created_at", filter=day & build),
    )
    return Quota(
        resets_at=(used.pop("oldest") or now) + _DAY,
        builds_reset_at=(used.pop("oldest_build") or now) + _DAY,
        **used,
        waiting_limit=limits.waiting,
        daily_limit=limits.per_day,
        why_waiting=limits.why("waiting"),
        why_daily=limits.why("per_day"),
    )


def check_quota(user: User, now: datetime, mode: Mode = Mode.RANKED) -> None:
    """Raise `QuotaExceeded` if `user` may enter nothing in this mode now, `Stopped` if nobody may.

    Two requests of one user at the same time take turns, so that both cannot be the last.
    """
    check_open(Announcement.Kind.SUBMISSIONS, now)
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    used = quota(user, now)
    if mode is Mode.COMPILE:
        what, waiting, day = "compile checks", used.builds_waiting, used.builds_today
        limits, prefix, resets_at = used.builds_limits, "builds_", used.builds_reset_at
    else:
        what, waiting, day = "evaluations", used.waiting, used.today
        limits, prefix, resets_at = (used.waiting_limit, used.daily_limit), "", used.resets_at
    if waiting >= limits[0]:
        reason = (
            f"you have {waiting} {what} waiting or running, which is the limit; wait for one to"
        )
        raise QuotaExceeded(
            "",
            f"{reason} end, or cancel one{used.why_waiting}",
            limit=f"{prefix}waiting",
            retry_s=_A_JOB_S,
        )
    if day >= limits[1]:
        what = "compile checks" if prefix else "submissions and re-runs"
        reason = f"you have used all {limits[1]} {what} until {resets_at:%Y-%m-%d %H:%M} UTC"
        raise QuotaExceeded(
            "",
            reason + used.why_daily,
            limit=f"{prefix}per_day",
            retry_s=ceil((resets_at - now).total_seconds()),
        )
