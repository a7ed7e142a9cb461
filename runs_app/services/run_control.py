"""What the owner of a run can do with it: pause, resume, stop, extend."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, F, Q, Sum, When

from runs_app import queues, selectors
from runs_app.evolve import facts
from runs_app.evolve.config import Budget
from runs_app.models import LanguageModelCall, Run
from runs_app.services import run_end, run_log, spending
from runs_app.services.errors import NotAllowed, QuotaExceeded, SubmissionError
from runs_app.services.run_history import budget_of, config_of


@transaction.atomic
def pause_run(*, run: Run, user: User, now: datetime) -> Run:
    """Begin nothing new; what was sent or queued is awaited and kept.

    Raises `NotAllowed` for strangers, and for a run that is not running.
    """
    locked = _locked(run, user)
    if locked.status != Run.Status.RUNNING:
        raise NotAllowed("", f"this run is {locked.status.lower()}, so it cannot be paused")
    by = user.get_username()
    run_end.pause(locked, by=by, reason=f"paused by {by}", now=now)
    locked.save()
    return locked


@transaction.atomic
def resume_run(*, run: Run, user: User, now: datetime) -> Run:
    """Go on with a paused run; raises `NotAllowed`, and `QuotaExceeded` if too many run or cost."""
    locked = _locked(run, user)
    if locked.status != Run.Status.PAUSED:
        raise NotAllowed("", f"this run is {locked.status.lower()}, so it cannot be resumed")
    check_running(locked.user)
    if spending.is_priced(config_of(locked).models):
        spending.check_day(budget_of(locked), user=user, now=now, run=locked)
    run_log.write(locked, "resumed", {"by": user.get_username()}, now=now)
    _go_on(locked, now)
    locked.save()
    return locked


@transaction.atomic
def stop_run(*, run: Run, user: User, now: datetime) -> Run:
    """End a run for good; calls that were not sent and evaluations are taken back."""
    locked = _locked(run, user)
    if locked.is_over:
        raise NotAllowed("", f"this run is {locked.status.lower()} already")
    run_end.stop(locked, by=user.get_username(), now=now)
    locked.save()
    return locked


@transaction.atomic
def extend_run(*, run: Run, user: User, budget: Budget, now: datetime) -> Run:
    """Give a run another budget; one that its budget had ended goes on.

    `budget` replaces the old one, and binds calls that were not sent yet. Raises `NotAllowed` for
    a run that somebody stopped or whose strategy came to its end, `SubmissionError` for a budget
    without any cap or beyond the site's limits on money.
    """
    locked = _locked(run, user)
    check_capped(budget)
    ended_by_budget = locked.status == Run.Status.FINISHED and locked.by_budget
    if locked.is_over and not ended_by_budget:
        raise NotAllowed("", f"this run is over ({locked.reason}): start another one")
    budget = _paid_for(locked, user, budget, now)
    run_log.write_fact(locked, facts.Extended(budget=budget), now=now)
    _take_back_calls(locked, budget, now)
    if ended_by_budget:
        check_running(locked.user)
        locked.by_budget, locked.ended_at = False, None
        _go_on(locked, now)
    elif locked.status == Run.Status.RUNNING:
        transaction.on_commit(lambda: queues.enqueue_advance(locked.pk))
    locked.save()
    return locked


def _paid_for(run: Run, user: User, budget: Budget, now: datetime) -> Budget:
    """The new budget, within the site's limits on money; a lower cap always is."""
    models, before = config_of(run).models, budget_of(run).usd
    budget = spending.capped(budget, models, user)
    lower = budget.usd is not None and before is not None and budget.usd <= before
    if spending.is_priced(models) and not (lower and run.status == Run.Status.RUNNING):
        spending.check_day(budget, user=user, now=now, run=run)
    return budget


def check_capped(budget: Budget) -> None:
    """Raise `SubmissionError` for a budget that would let a run go on for ever."""
    caps: tuple[Any, ...] = (budget.usd, budget.tokens, budget.evaluations, budget.wall_time_s)
    if all(cap is None for cap in caps):
        raise SubmissionError(
            "budget", "give at least one cap: usd, tokens, evaluations or wall_time_s"
        )


def check_running(user: User) -> None:
    """Raise `QuotaExceeded` if as many runs of the user are running as may."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    running = Run.objects.filter(user=user, status=Run.Status.RUNNING).count()
    if running >= settings.MAX_RUNNING_RUNS_PER_USER:
        raise QuotaExceeded(
            "", f"{running} of your runs are running, the most allowed; pause or stop one first"
        )


def _locked(run: Run, user: User) -> Run:
    locked = run_log.lock(run.pk)
    if not selectors.may_control(user, locked):
        raise NotAllowed("", "only the run's owner and admins may do this")
    return locked


def _take_back_calls(run: Run, budget: Budget, now: datetime) -> None:
    """Fail the newest unsent calls until those that are left can be paid at their worst."""
    usd, tokens = _reserved(run)
    waiting = run.calls.filter(status=LanguageModelCall.Status.WAITING)
    for call in waiting.order_by("-number"):
        too_dear = budget.usd is not None and usd > budget.usd
        too_long = budget.tokens is not None and tokens > budget.tokens
        if not (too_long or (too_dear and call.worst_usd > 0)):
            continue
        usd, tokens = usd - call.worst_usd, tokens - call.worst_tokens
        run_end.take_back(waiting.filter(pk=call.pk), "the budget was lowered", now=now)


def _reserved(run: Run) -> tuple[float, int]:
    """USD and tokens of a run's calls: those that are over at their cost, others at their worst."""
    over = Q(ended_at__isnull=False)
    sums = run.calls.aggregate(
        usd=Sum(Case(When(over, then=F("cost_usd")), default=F("worst_usd"))),
        tokens=Sum(Case(When(over, then=F("tokens_in") + F("tokens_out")), default="worst_tokens")),
    )
    return sums["usd"] or 0.0, sums["tokens"] or 0


def _go_on(run: Run, now: datetime) -> None:
    run.status, run.reason, run.failures = Run.Status.RUNNING, "", 0
    run.resumed_at = now
    waiting = run.calls.filter(status=LanguageModelCall.Status.WAITING)
    calls = list(waiting.order_by("number").values_list("pk", flat=True))

    def wake() -> None:
        for call_id in calls:
            queues.enqueue_call(call_id)
        queues.enqueue_advance(run.pk)

    transaction.on_commit(wake)
