"""Refuse what goes beyond a user's quota, and everything while submissions are stopped."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User

from runs_app.errors import QuotaExceeded
from runs_app.models import Announcement
from runs_app.submissions.quota import quota as quota_of
from runs_app.work.stops import check_open


def check_quota(user: User, now: datetime) -> None:
    """Raise `QuotaExceeded` if `user` may enter nothing now, `Stopped` if nobody may.

    Two requests of one user at the same time take turns, so that both cannot be the last.
    """
    check_open(Announcement.Kind.SUBMISSIONS, now)
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    quota = quota_of(user, now)
    if quota.waiting >= quota.waiting_limit:
        reason = f"you have {quota.waiting} evaluations waiting or running, the most allowed;"
        raise QuotaExceeded("", f"{reason} wait for one to end, or cancel one{quota.why_waiting}")
    if quota.remaining == 0:
        at = f"{quota.resets_at:%Y-%m-%d %H:%M} UTC"
        reason = f"you have used all {quota.daily_limit} submissions and re-runs until {at}"
        raise QuotaExceeded("", reason + quota.why_daily)
