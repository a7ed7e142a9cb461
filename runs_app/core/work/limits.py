"""How much a person may use, and what an admin has stopped for everybody."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from runs_app.core.errors import Stopped
from runs_app.models import Announcement, PersonalQuota


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
        share, counts = settings.NEW_ACCOUNT_SHARE, ("waiting", "per_day", "running_runs")
        limits = {name: getattr(usual, name) for name in counts}
        less = {name: max(int(limit * share), min(limit, 1)) for name, limit in limits.items()}
        usual = replace(usual, **less, usd_per_day=usual.usd_per_day * share, new_until=until)
    if own is None:
        return usual
    names = ("waiting", "per_day", "running_runs", "usd_per_day")
    chosen = {name: value for name in names if (value := getattr(own, name)) is not None}
    return replace(usual, **chosen, own=frozenset(chosen))


Kind = Announcement.Kind

WORDS = {
    Kind.SUBMISSIONS: "isn't accepting submissions right now",
    Kind.RUNS: "isn't starting runs right now",
}
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
