"""What the owner of a run can do with it: pause, resume, stop, extend."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from runs_app import queues, selectors
from runs_app.evolve import facts
from runs_app.evolve.config import Budget
from runs_app.models import LanguageModelCall, Run
from runs_app.services import run_end, run_log
from runs_app.services.errors import NotAllowed, QuotaExceeded, SubmissionError


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
    """Go on with a paused run; raises `NotAllowed`, and `QuotaExceeded` if too many run."""
    locked = _locked(run, user)
    if locked.status != Run.Status.PAUSED:
        raise NotAllowed("", f"this run is {locked.status.lower()}, so it cannot be resumed")
    check_running(locked.user)
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

    `budget` replaces the old one. Raises `NotAllowed` for a run that somebody stopped or whose
    strategy came to its end, `SubmissionError` for a budget without any cap.
    """
    locked = _locked(run, user)
    check_capped(budget)
    ended_by_budget = locked.status == Run.Status.FINISHED and locked.by_budget
    if locked.is_over and not ended_by_budget:
        raise NotAllowed("", f"this run is over ({locked.reason}): start another one")
    run_log.write_fact(locked, facts.Extended(budget=budget), now=now)
    if ended_by_budget:
        check_running(locked.user)
        locked.by_budget, locked.ended_at = False, None
        _go_on(locked, now)
    elif locked.status == Run.Status.RUNNING:
        transaction.on_commit(lambda: queues.enqueue_advance(locked.pk))
    locked.save()
    return locked


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
