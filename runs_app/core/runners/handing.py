"""Hand waiting jobs over to runners: one at a time, to whoever may do them, and to nobody else."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet, Value

from gpu_runner.data.codec import DataError
from gpu_runner.data.order import Ask, JobName, Order
from gpu_runner.data.queue import Urgency
from runs_app.core.messaging import orders
from runs_app.core.runners.heartbeats import MOST_AT_ONCE, MOST_OF_TOKEN
from runs_app.core.work import lifecycle
from runs_app.models import JOBS, Runner, RunnerJob, RunnerToken, Status

_TRIES = 5  # others may take the job that was just seen; who comes so late waits a moment


def asking(*, token: RunnerToken, ask: Ask) -> Runner | None:
    """The runner that asks, if it may have a job now."""
    rows = Runner.objects.select_related("token", "device").exclude(state=Runner.State.STOPPED)
    rows = rows.filter(token=token, token__revoked_at=None, name=f"{token.name}.{ask.runner}")
    same = {"device": ask.device, "boot_id": ask.boot_id, "wanted": Runner.Wanted.WORK}
    return rows.filter(**same).first()


def hand_over(*, token: RunnerToken, ask: Ask, now: datetime) -> Order | None:
    """The job that a runner gets for its ask; None if there is none for it.

    The same ticket gets the same job again as long as it holds that: its answer may have been
    lost on its way. Raises `DataError` for an ask that names no job as it should.
    """
    wanted = JobName.read(ask.job) if ask.job else None
    runner = asking(token=token, ask=ask)
    if runner is None:
        return None
    for _ in range(_TRIES):
        if (held := _held(runner, ask)) is not None:
            return orders.order_of(held)
        seen = _named(wanted, runner, now) if wanted else _next(runner, ask.urgencies, now)
        wanted = None
        if seen is not None and _is_handed_over(seen, runner, ask, now):
            return orders.order_of(seen)
    return None


def _held(runner: Runner, ask: Ask) -> RunnerJob | None:
    """The job that was handed over for this ticket, if the runner holds it still."""
    mine = _running(runner=runner, ticket=ask.ticket, runner_boot_id=ask.boot_id)
    return next((JOBS[kind]._default_manager.filter(pk=pk).first() for kind, pk, *_ in mine), None)


def _running(**whom: Any) -> list[tuple[str, UUID, int, str]]:
    """Kind, key, runner and ticket of the jobs that these hold."""
    columns, chosen = ("pk", "runner", "ticket"), {**whom, "status": Status.RUNNING}
    rows = (
        model._default_manager.filter(**chosen).order_by().values_list(Value(kind), *columns)
        for kind, model in JOBS.items()
    )
    return list(next(rows).union(*rows, all=True))


@transaction.atomic
def _is_handed_over(seen: RunnerJob, runner: Runner, ask: Ask, now: datetime) -> bool:
    locked = Runner.objects.select_for_update(no_key=True)  # its asks take turns
    if not locked.filter(pk=runner.pk).exclude(state=Runner.State.STOPPED):  # revoked meanwhile
        return False
    held = _running(runner__token=runner.token_id)
    mine = [ticket for _, _, holder, ticket in held if holder == runner.pk]
    if ask.ticket in mine or len(mine) >= MOST_AT_ONCE or len(held) >= MOST_OF_TOKEN:
        return False
    job = lifecycle.lock_again(seen)
    if job is None:
        return False
    lifecycle.give_to_runner(job, runner=runner, ticket=ask.ticket, now=now)
    return True


def _named(name: JobName, runner: Runner, now: datetime) -> RunnerJob | None:
    """The waiting job of that name; if it is for another runner, it goes to the queue's end."""
    try:
        rows = JOBS[name.kind]._default_manager.filter(
            device=runner.device_id, status=Status.QUEUED, attempt=name.attempt
        )
        seen = rows.filter(pk=name.job_id).first()
    except (KeyError, ValidationError):
        raise DataError("job", f"{name} is not one of this site's jobs") from None
    if seen and not _for(runner, _others(runner), rows.filter(pk=seen.pk), now).exists():
        orders.enqueue(seen)
        return None
    return seen


def _next(runner: Runner, urgencies: Collection[Urgency], now: datetime) -> RunnerJob | None:
    """The most urgent job that waits for the runner, the oldest of these."""
    found: list[RunnerJob] = []
    others = _others(runner)
    for model in JOBS.values():
        waiting = model._default_manager.filter(
            model.waits_as(*urgencies), device=runner.device_id, status=Status.QUEUED
        )
        found += _for(runner, others, waiting, now).order_by("queue_place", "queued_at")[:1]
    return min(found, key=lambda row: (row.queue_place, row.queued_at), default=None)


def _for(runner: Runner, others: list[Runner], rows: QuerySet[Any], now: datetime) -> QuerySet[Any]:
    """Those of these rows, of one kind, that the runner may have beside the others of its device.

    A runner can only lie about what it measures itself. So a guest decides about no task, and
    about nobody else's results or baselines where a trusted runner can. An audit waits for a
    trusted runner of another token than that which it checks, as long as one is at work; and for
    its first ten minutes at least for another host.
    """
    at_work = [each for each in others if _is_at_work(each, now)]
    rows = _but_lost(rows, runner, at_work, now)
    if not runner.token.trusted:
        if rows.model.NEEDS_TRUST:
            return rows.none()
        return rows.exclude(rows.model.PREFERS_TRUST) if _trusted(others) else rows
    tokens = {each.token_id for each in _trusted(at_work)}
    if tokens - {runner.token_id}:
        return rows.exclude(rows.model.checks(runner__token=runner.token_id))
    if tokens:
        return rows.exclude(rows.model.checks(runner=runner.pk), created_at__gt=now - _PATIENCE)
    return rows


_PATIENCE = timedelta(minutes=10)  # so long a job waits for another runner than its own


def _others(runner: Runner) -> list[Runner]:
    """The other runners of its device whose tokens are valid."""
    rows = Runner.objects.select_related("token").exclude(pk=runner.pk)
    return list(rows.filter(device=runner.device_id, token__revoked_at=None))


def _is_at_work(runner: Runner, now: datetime) -> bool:
    """Whether it would take a job."""
    heard = runner.seen_at > now - timedelta(seconds=settings.RUNNER_TIMEOUT_S)
    return heard and (runner.state, runner.wanted) == (Runner.State.READY, Runner.Wanted.WORK)


def _but_lost(
    rows: QuerySet[Any], runner: Runner, at_work: Collection[Runner], now: datetime
) -> QuerySet[Any]:
    """Those of the rows that this token has not lost, if somebody else may have these.

    Otherwise a runner could end any job as lost too often.
    """
    able = _trusted(at_work) if rows.model.NEEDS_TRUST else at_work
    if all(each.token_id == runner.token_id for each in able):
        return rows
    return rows.exclude(lost_by=runner.token_id, queued_at__gt=now - _PATIENCE)


def _trusted(runners: Collection[Runner]) -> list[Runner]:
    """Those whose hosts the admins control."""
    return [each for each in runners if each.token.trusted]
