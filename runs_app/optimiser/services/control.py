"""What the owner of a run can do with it: pause, resume, stop, extend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, F, Q, Sum, When

from gpu_runner.data.codec import DataError
from runs_app.core.errors import NotAllowed, QuotaExceeded, SubmissionError, WrongState
from runs_app.core.messaging import queues
from runs_app.core.work.limits import check_open, limits_of
from runs_app.models import Announcement, LanguageModelCall, Run
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.config import MOST, Budget
from runs_app.optimiser.evolve.optimizer import extended
from runs_app.optimiser.evolve.strategies import STRATEGIES, make_strategy
from runs_app.optimiser.selectors.runs import active_s as active_seconds
from runs_app.optimiser.selectors.runs import may_control, spent_by
from runs_app.optimiser.services import end as run_end
from runs_app.optimiser.services import log as run_log
from runs_app.optimiser.services import spending
from runs_app.optimiser.services.history import (
    budget_of,
    config_now,
    config_of,
    extension_of,
    problem_of,
)
from tasks_app.errors import Faults
from tasks_app.people import role_of

_CAPS = ", ".join(MOST)


@transaction.atomic
def pause_run(*, run: Run, user: User, now: datetime) -> Run:
    """Begin nothing new; what was sent or queued is awaited and kept.

    Raises `NotAllowed` for strangers, and for a run that is not running.
    """
    locked = _locked(run, user)
    if locked.status != Run.Status.RUNNING:
        raise WrongState("status", f"this run is {locked.status.lower()}, so it cannot be paused")
    by = role_of(user, locked.user_id)
    run_end.pause(locked, by=by, reason=f"paused by {by}", now=now)
    locked.save()
    return locked


@transaction.atomic
def resume_run(*, run: Run, user: User, now: datetime) -> Run:
    """Go on with a paused run; raises `NotAllowed`, and `QuotaExceeded` if too many run or cost."""
    locked = _locked(run, user)
    if locked.status != Run.Status.PAUSED:
        raise WrongState("status", f"this run is {locked.status.lower()}, so it cannot be resumed")
    check_running(locked.user, now)
    if spending.is_priced(config_of(locked).models):
        spending.check_day(budget_of(locked), user=user, now=now, run=locked)
    run_log.write(locked, "resumed", {"by": role_of(user, locked.user_id)}, now=now)
    _go_on(locked, now)
    locked.save()
    return locked


@transaction.atomic
def stop_run(*, run: Run, user: User, now: datetime) -> Run:
    """End a run for good; calls that were not sent and evaluations are taken back."""
    locked = _locked(run, user)
    if locked.is_over:
        raise WrongState("status", f"this run is already {locked.status.lower()}")
    run_end.stop(locked, by=role_of(user, locked.user_id), now=now)
    locked.save()
    return locked


@transaction.atomic
def extend_run(
    *,
    run: Run,
    user: User,
    budget: Budget,
    now: datetime,
    parameters: Mapping[str, object] | None = None,
) -> Run:
    """Give a run another budget, or its strategy more to do; one that had finished goes on.

    `budget` replaces the old one, and binds calls that were not sent yet. `parameters`: higher
    numbers of those that the strategy lets grow, such as generations. Raises `NotAllowed` for
    strangers, `WrongState` for a run that somebody stopped or whose strategy came to its end and
    gets no more to do, and `SubmissionError` for a budget without any cap, beyond what caps may be
    or the site's limits on money, or with which the run would end at once again.
    """
    locked = _locked(run, user)
    check_budget(budget)
    more = grown(locked, parameters or {})
    finished = locked.status == Run.Status.FINISHED
    goes_on = finished and (locked.by_budget or bool(more))
    if locked.is_over and not goes_on:
        raise WrongState("status", f"this run is over ({locked.reason}): {_what_to_do(locked)}")
    if goes_on:
        _check_goes_on(locked, budget, now)
    budget = _paid_for(locked, user, budget, now)
    run_log.write_event(locked, events.Extended(budget=budget, parameters=more), now=now)
    _take_back_calls(locked, budget, now)
    if goes_on:
        check_running(locked.user, now)
        locked.by_budget, locked.ended_at = False, None
        _go_on(locked, now)
    elif locked.status == Run.Status.RUNNING:
        transaction.on_commit(lambda: queues.enqueue_advance(locked.pk))
    locked.save()
    return locked


def grown(run: Run, parameters: Mapping[str, object]) -> dict[str, object]:
    """All parameters of the strategy that extensions have changed, with these; empty for none.

    Raises `SubmissionError` for one that may not grow, or that is not higher than it was.
    """
    if not parameters:
        return {}
    info, config, faults = STRATEGIES[run.strategy], config_now(run), Faults()
    for name, value in parameters.items():
        field = f"parameters.{name}"
        if name not in info.grows:
            faults.add(field, f"cannot be extended; these can: {', '.join(info.grows)}")
            continue
        before = config.parameters.get(name, getattr(info.parameters(), name))
        if isinstance(value, bool) or not isinstance(value, int) or value <= before:
            faults.add(field, f"must be a whole number above {before}, its current value")
    faults.tell(SubmissionError)
    extension = extension_of(run)
    more = {**(extension.parameters if extension else {}), **parameters}
    try:
        make_strategy(problem_of(run), extended(config, more))
    except DataError as error:
        raise SubmissionError.about(error) from None
    return more


def _what_to_do(run: Run) -> str:
    names = STRATEGIES[run.strategy].grows if run.strategy in STRATEGIES else ()
    if run.status == Run.Status.STOPPED or not names:
        return "start another run"
    return f"raise its {' or '.join(names)}, or start another run"


def _paid_for(run: Run, user: User, budget: Budget, now: datetime) -> Budget:
    """The new budget, within the site's limits on money; a lower cap always is."""
    models, before = config_of(run).models, budget_of(run).usd
    budget = spending.capped(budget, models, user)
    lower = budget.usd is not None and before is not None and budget.usd <= before
    if spending.is_priced(models) and not (lower and run.status == Run.Status.RUNNING):
        spending.check_day(budget, user=user, now=now, run=run)
    return budget


def check_extension(caps: Mapping[str, object], parameters: Mapping[str, object]) -> None:
    """Raise `SubmissionError` for an extension that names nothing."""
    if not caps and not parameters:
        raise SubmissionError("budget", f"set at least one cap ({_CAPS}) or parameter")


def changed_budget(run: Run, caps: Mapping[str, Any]) -> Budget:
    """The run's budget of now with `caps` by name in place of its own; None is no cap.

    Raises `SubmissionError`.
    """
    try:
        return replace(budget_of(run), **caps)
    except DataError as error:
        raise SubmissionError.about(error) from None


def check_budget(budget: Budget) -> None:
    """Raise `SubmissionError` for a budget without any cap, and for caps that are no caps."""
    caps = {name: getattr(budget, name) for name in MOST}
    if all(cap is None for cap in caps.values()):
        raise SubmissionError("budget", f"set at least one cap: {_CAPS}")
    faults = Faults()
    for name, cap in caps.items():
        if cap is not None and cap > MOST[name]:
            faults.add(f"budget.{name}", f"must be at most {MOST[name]}")
    faults.tell(SubmissionError)


def _check_goes_on(run: Run, budget: Budget, now: datetime) -> None:
    """Raise `SubmissionError` for a cap that the run has used up already."""
    faults = Faults()
    for name, used in spent_by(run, active_seconds(run, now)).items():
        cap, may_be_reached = getattr(budget, name), name in ("usd", "tokens")
        if cap is not None and (cap < used or (cap == used and not may_be_reached)):
            reason = f"the run has already used {used:.6g} of {cap:.6g}: raise or remove the cap"
            faults.add(f"budget.{name}", reason)
    faults.tell(SubmissionError)


def check_running(user: User, now: datetime) -> None:
    """Raise `QuotaExceeded` if as many runs of the user are running as may, or `Stopped`."""
    check_open(Announcement.Kind.RUNS, now)
    limits = limits_of(user, now)
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    running = Run.objects.filter(user=user, status=Run.Status.RUNNING).count()
    if running >= limits.running_runs:
        words = "of your runs is" if running == 1 else "of your runs are"
        reason = f"{running} {words} running, which is the limit; pause or stop one first"
        reason += limits.why("running_runs")
        raise QuotaExceeded("", reason, limit="running_runs")


def _locked(run: Run, user: User) -> Run:
    locked = run_log.lock(run.pk)
    if site := locked.device.imported_from:
        raise NotAllowed("", f"this run was made on {site} and imported; it can't be changed here")
    if not may_control(user, locked):
        raise NotAllowed("", "only the run's owner and admins can do this")
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
