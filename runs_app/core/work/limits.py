"""How much a person may use: the site's limits, less in an account's first days, or one's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User

from runs_app.models import PersonalQuota


@dataclass(frozen=True)
class Limits:
    """What a person may use at most."""

    waiting: int
    """Evaluations that wait or run at once."""
    per_day: int
    """Submissions and re-runs in 24 hours."""
    running_runs: int
    """Optimization runs that run at once."""
    usd_per_day: float
    """US dollars that runs may cost in 24 hours."""
    new_until: datetime | None = None
    """When the account stops being new, if it is."""
    own: frozenset[str] = frozenset()
    """Names of those that an admin has set for this person."""

    def why(self, name: str) -> str:
        """Words after a refusal that say why a limit is low; empty if it is the usual."""
        if name in self.own:
            return "; an admin set this limit for you"
        if self.new_until is None:
            return ""
        return f"; your account is new, and its limits rise {self.new_until:%Y-%m-%d} on"


def limits_of(user: User, now: datetime) -> Limits:
    """The limits of `user`; what an admin has set for a person comes before all else."""
    usual = Limits(
        waiting=settings.MAX_WAITING_PER_USER,
        per_day=settings.MAX_SUBMISSIONS_PER_DAY,
        running_runs=settings.MAX_RUNNING_RUNS_PER_USER,
        usd_per_day=settings.MAX_USD_PER_USER_DAY,
    )
    own = PersonalQuota.objects.filter(user=user).first()
    until = user.date_joined + timedelta(days=settings.NEW_ACCOUNT_DAYS)
    if until > now and not user.is_staff:
        usual = _share(usual, settings.NEW_ACCOUNT_SHARE, until)
    if own is None:
        return usual
    names = ("waiting", "per_day", "running_runs", "usd_per_day")
    chosen = {name: value for name in names if (value := getattr(own, name)) is not None}
    return replace(usual, **chosen, own=frozenset(chosen))


def _share(limits: Limits, share: float, until: datetime) -> Limits:
    return Limits(
        waiting=_least_one(limits.waiting, share),
        per_day=_least_one(limits.per_day, share),
        running_runs=_least_one(limits.running_runs, share),
        usd_per_day=limits.usd_per_day * share,
        new_until=until,
    )


def _least_one(limit: int, share: float) -> int:
    return max(int(limit * share), min(limit, 1))
