"""How much a user may still enter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User

from gpu_runner.data.verdict import Mode
from runs_app.models import Evaluation, Status, Submission
from runs_app.work.limits import limits_of

EMPTIED = "an admin emptied the queue"
"""With this begins the reason of what was cancelled so."""

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Quota:
    """A user's evaluations of the last 24 hours; `resets_at` is when one place comes free.

    why_waiting, why_daily: what to add to a refusal where that limit is not the usual one.
    """

    waiting: int  # queued or running now
    waiting_limit: int
    today: int  # entered within 24 hours
    daily_limit: int
    resets_at: datetime
    why_waiting: str = ""
    why_daily: str = ""

    @property
    def remaining(self) -> int:
        """Submissions and re-runs left."""
        return max(self.daily_limit - self.today, 0)


def quota(user: User, now: datetime) -> Quota:
    """What `user` has used, and what the limits are."""
    limits = limits_of(user, now)
    entered = Evaluation.objects.filter(submission__author=user).exclude(
        submission__origin=Submission.Origin.RUN
    )
    # nobody chooses to be audited, or to be measured again by the site
    own = entered.exclude(mode=Mode.AUDIT.value).exclude(background=True)
    own = own.exclude(status=Status.CANCELLED, reason__startswith=EMPTIED)  # nobody's choice either
    recent = own.filter(created_at__gt=now - _DAY)
    oldest = recent.order_by("created_at").values_list("created_at", flat=True).first()
    return Quota(
        waiting=own.filter(status__in=(Status.QUEUED, Status.RUNNING)).count(),
        waiting_limit=limits.waiting,
        today=recent.count(),
        daily_limit=limits.per_day,
        resets_at=(oldest or now) + _DAY,
        why_waiting=limits.why("waiting"),
        why_daily=limits.why("per_day"),
    )
