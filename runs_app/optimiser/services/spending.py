"""Refuse runs that could cost more money than the site pays for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User

from runs_app.core.errors import QuotaExceeded, SubmissionError
from runs_app.core.work.limits import limits_of
from runs_app.models import Run
from runs_app.optimiser.evolve.budget import unpriced
from runs_app.optimiser.evolve.config import Budget, ModelSpec
from runs_app.optimiser.selectors.spending import held_usd, paid_usd
from tasks_app.disclosure import sees_hidden
from tasks_app.numbers import usd

_FIELD = "budget.usd"
_ALWAYS_CAPPED = (
    "every run with a priced language model has the site's cap, so choose only models with prices,"
    " choose only models without"
)


def capped(budget: Budget, models: Iterable[ModelSpec], user: User | None) -> Budget:
    """The budget of a run by `user`, with the site's cap on money where it names none.

    Raises `SubmissionError` for a higher cap, and for any that can't be checked, as a language
    model has no price. Runs whose language models cost nothing and runs of admins stay as they are.
    """
    asked, limit = list(models), settings.MAX_RUN_USD
    if not sees_hidden(user) and is_priced(asked):
        if budget.usd is None and (reason := unpriced(asked, _ALWAYS_CAPPED)):
            raise SubmissionError(_FIELD, reason)
        budget = replace(budget, usd=limit) if budget.usd is None else budget
        if budget.usd is not None and budget.usd > limit:
            raise SubmissionError(_FIELD, f"must be at most {limit:g}, the site's limit for a run")
    if budget.usd is not None and (reason := unpriced(asked)):
        raise SubmissionError(_FIELD, reason)
    return budget


def within_day(budget: Budget, user: User, now: datetime) -> Budget:
    """The site's cap on money, lowered to what is left of its owner's day; for a new run."""
    if budget.usd is None or sees_hidden(user):
        return budget
    left = limits_of(user, now).usd_per_day - held_usd(user, now)
    return replace(budget, usd=min(budget.usd, left)) if left > 0 else budget


def check_day(budget: Budget, *, user: User, now: datetime, run: Run | None = None) -> None:
    """Raise `QuotaExceeded` if a priced run may cost more than is left of its owner's day.

    run: the one that is to go on; None for a new one. Two requests of one user take turns.
    """
    if sees_hidden(user):
        return
    if budget.usd is None:
        raise QuotaExceeded(_FIELD, "the run has no cap on its cost; add one first")
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    limits = limits_of(user, now)
    limit = limits.usd_per_day
    left = max(limit - held_usd(user, now, besides=run), 0.0)
    cost = budget.usd - (paid_usd(run) if run else 0.0)
    if cost > left:
        reason = (
            f"the run could cost another {usd(cost)}. You can spend {usd(limit)} on runs in 24"
            f" hours, of which {usd(left)} is left after past spending and the caps of active runs"
        )
        raise QuotaExceeded(
            _FIELD,
            f"{reason}; lower the cap, or wait{limits.why('usd_per_day')}",
            limit="usd_per_day",
        )


def is_priced(models: Iterable[ModelSpec]) -> bool:
    """Whether any of the language models is known to cost money."""
    return any(model.price_in_usd or model.price_out_usd for model in models)
