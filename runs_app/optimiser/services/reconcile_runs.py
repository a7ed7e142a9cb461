"""Find runs and calls that nobody works on any more, and see to it that somebody does."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from runs_app.core.messaging import queues
from runs_app.models import LanguageModelCall, Run
from runs_app.optimiser.services.calls import interrupt_call

_SETTLING = timedelta(seconds=10)  # a job younger than this may be on its way to a worker
_STEP_EVERY = timedelta(seconds=20)  # a running run that was not looked at for so long is
_OVER = ("ANSWERED", "FAILED", "INTERRUPTED")


def reconcile_runs(*, now: datetime, listening_since: datetime) -> int:
    """End calls whose process died, queue forgotten ones, wake runs; returns how many calls.

    `listening_since` is when database and Redis were last seen to come back: silence before it
    proves nothing. Raises `RedisError` without Redis.
    """
    if now - listening_since < _SETTLING:
        return 0
    count = _interrupt_silent(now, listening_since)
    count += _queue_forgotten(now)
    for run_id in _asleep(now):
        queues.enqueue_advance(run_id)
    return count


def _interrupt_silent(now: datetime, listening_since: datetime) -> int:
    deadline = now - timedelta(seconds=settings.CALL_SILENCE_S)
    if listening_since > deadline:
        return 0
    silent = LanguageModelCall.objects.filter(status="SENT", heard_at__lt=deadline)
    return sum(interrupt_call(call=call, now=now) for call in silent.order_by("pk"))


def _queue_forgotten(now: datetime) -> int:
    """Calls of runs and tests; a tuning sends its own, and one that died wants no more answers."""
    waiting = LanguageModelCall.objects.filter(
        Q(run__isnull=True, tuning__isnull=True) | Q(run__status=Run.Status.RUNNING),
        status="WAITING",
        created_at__lt=now - _SETTLING,
    )
    calls = list(waiting.order_by("created_at").values_list("pk", flat=True))
    known = queues.waiting_calls() if calls else set()
    forgotten = [call for call in calls if str(call) not in known]
    for call in forgotten:
        queues.enqueue_call(call)
    return len(forgotten)


def _asleep(now: datetime) -> set[object]:
    """Runs that may have missed the end of something."""
    stale = Q(advanced_at__lt=now - _STEP_EVERY) | Q(advanced_at__isnull=True)
    running = Run.objects.filter(stale, status=Run.Status.RUNNING, created_at__lt=now - _SETTLING)
    untold = LanguageModelCall.objects.filter(
        told=False, run__isnull=False, status__in=_OVER, ended_at__lt=now - _SETTLING
    )
    return {*running.values_list("pk", flat=True), *untold.values_list("run_id", flat=True)}
