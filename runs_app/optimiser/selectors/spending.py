"""How much money a user's runs may still cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Case, Count, Q, Sum, When
from django.db.models.lookups import Exact

from runs_app.core.work.limits import limits_of
from runs_app.models import LanguageModelCall, Run
from runs_app.optimiser.selectors.runs import budgets
from tasks_app.disclosure import sees_hidden
from tasks_app.people import Viewer

_DAY = timedelta(days=1)


def known_sum(column: str) -> Case:
    """The sum of a column of money, 0 without rows; null if one of them is, so nobody knows it."""
    return Case(When(Exact(Count("pk"), Count(column)), then=Sum(column, default=0.0)))


def total_usd(costs: Iterable[float | None]) -> float | None:
    """The same of these amounts."""
    found = list(costs)
    known = [each for each in found if each is not None]
    return math.fsum(known) if len(known) == len(found) else None


@dataclass(frozen=True)
class _Bill:
    """A run's, in US dollars: paid in all, paid in 24 hours, and the worst of open calls."""

    paid: float = 0.0
    lately: float = 0.0
    open: float = 0.0


@dataclass(frozen=True, kw_only=True)
class MoneyLimits:
    """In US dollars: the most of a run, of a user's day, and what is left of that day.

    left: of 24 hours, less what calls have cost in them, what calls under way may cost, and what
    running runs may still spend under their caps. None if nobody is signed in.
    """

    run: float
    day: float
    left: float | None = None


def money_limits(user: Viewer, now: datetime) -> MoneyLimits | None:
    """What the user's runs may cost; None for admins, whom the site does not limit."""
    if sees_hidden(user):
        return None
    day, left = settings.MAX_USD_PER_USER_DAY, None
    if isinstance(user, User):
        day = limits_of(user, now).usd_per_day
        left = max(day - held_usd(user, now), 0.0)
    return MoneyLimits(run=settings.MAX_RUN_USD, day=day, left=left)


def held_usd(user: User, now: datetime, *, besides: Run | None = None) -> float:
    """US dollars that count against the user's day; of the run `besides` only what it has paid."""
    running = Run.objects.filter(user=user, status=Run.Status.RUNNING).defer("problem")
    costly = [run for run in running if _is_priced(run)]
    caps, bills = budgets(costly), _bills(user, now)
    held = 0.0
    for run_id in caps.keys() | bills.keys():
        bill = bills.get(run_id, _Bill())
        held += bill.lately
        if besides is not None and run_id == besides.pk:
            continue
        if run_id in caps:
            cap = caps[run_id].get("usd")
            held += math.inf if cap is None else max(cap - bill.paid, 0.0)
        else:
            held += bill.open
    return held


def paid_usd(run: Run) -> float:
    """US dollars that calls of the run have cost; those under way are not among them."""
    ended = run.calls.filter(ended_at__isnull=False)
    return float(ended.aggregate(usd=Sum("cost_usd", default=0.0))["usd"])


def _bills(user: User, now: datetime) -> dict[UUID, _Bill]:
    calls = LanguageModelCall.objects.filter(run__user=user).order_by()
    # the calls of a run end with it or minutes after it
    recent = calls.exclude(run__ended_at__lt=now - 2 * _DAY)
    rows = recent.values("run").annotate(
        paid=Sum("cost_usd", filter=Q(ended_at__isnull=False), default=0.0),
        lately=Sum("cost_usd", filter=Q(ended_at__gt=now - _DAY), default=0.0),
        open=Sum("worst_usd", filter=Q(ended_at__isnull=True), default=0.0),
    )
    return {row["run"]: _Bill(row["paid"], row["lately"], row["open"]) for row in rows}


def _is_priced(run: Run) -> bool:
    models = run.config.get("models", ())
    return any(model["price_in_usd"] or model["price_out_usd"] for model in models)
