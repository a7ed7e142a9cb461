"""How a locked run comes to a halt; the caller saves the row."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from gpu_runner.data.verdict import Mode
from runs_app.core.messaging import queues
from runs_app.core.work import lifecycle
from runs_app.models import UNDER_WAY, Evaluation, LanguageModelCall, Run
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.evaluations import RUN_ENDED
from runs_app.optimiser.selectors.runs import active_s
from runs_app.optimiser.services import enter as entries
from runs_app.optimiser.services import log as run_log
from runs_app.optimiser.signals import run_halted

UNSENT = "unsent"
"""Error kind of a call that was never sent, because its run had ended or its budget shrank."""


def pause(run: Run, *, by: str, reason: str, now: datetime) -> None:
    """Hold the run; what was sent or queued comes to its end, and nothing new is begun."""
    _halt(run, Run.Status.PAUSED, reason, now)
    run_log.write(run, "paused", {"by": by, "reason": reason}, now=now)
    if by != "its owner":
        run_halted.send(sender=Run, run=run, what=f"paused: {reason}", now=now)


def finish(run: Run, best: int | None, event: events.Finished, *, now: datetime) -> None:
    """End a run that has come to its end, or to that of its budget."""
    _halt(run, Run.Status.FINISHED, event.reason, now)
    run.by_budget, run.ended_at = event.by_budget, now
    drop_what_waits(run, now=now)
    if run.enters_best and best is not None:
        entries.enter_best(run, best, now=now)
    run_halted.send(sender=Run, run=run, what=f"ended: {event.reason}", now=now)


def stop(run: Run, *, by: str, now: datetime) -> None:
    """End a run because somebody wants it."""
    _halt(run, Run.Status.STOPPED, f"stopped by {by}", now)
    run.by_budget, run.ended_at = False, now
    run_log.write(run, "stopped", {"by": by}, now=now)
    drop_what_waits(run, now=now)
    if by != "its owner":
        run_halted.send(sender=Run, run=run, what=f"stopped by {by}", now=now)


def drop_what_waits(run: Run, *, spared: Collection[Mode] = (), now: datetime) -> None:
    """Take back calls that were not sent, and evaluations that have not ended of other modes."""
    waiting = run.calls.filter(status=LanguageModelCall.Status.WAITING)
    take_back(waiting, "the run ended", now=now)
    evaluations = Evaluation.objects.filter(submission__run=run)
    unfinished = evaluations.filter(status__in=UNDER_WAY).exclude(mode__in=spared).order_by("pk")
    for evaluation_id in unfinished.values_list("pk", flat=True):
        _cancel(evaluation_id, now)
    transaction.on_commit(lambda: queues.enqueue_advance(run.pk))  # to tell of all this


def take_back(waiting: QuerySet[LanguageModelCall], why: str, *, now: datetime) -> None:
    """Fail calls that are WAITING: they cost nothing, and nobody sends them."""
    waiting.update(
        status=LanguageModelCall.Status.FAILED,
        error=f"{why} before it was sent",
        error_kind=UNSENT,
        ended_at=now,
    )


def _cancel(evaluation_id: object, now: datetime) -> None:
    evaluation = lifecycle.lock(Evaluation, str(evaluation_id))
    if evaluation.is_over:
        return
    evaluation.reason = RUN_ENDED
    lifecycle.cancel(evaluation, reason=evaluation.reason, now=now)


def _halt(run: Run, status: Run.Status, reason: str, now: datetime) -> None:
    run.active_s = active_s(run, now)
    run.status, run.reason, run.resumed_at = status, reason, None
