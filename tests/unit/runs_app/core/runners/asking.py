"""Runners that ask for jobs, and jobs that wait for them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from gpu_runner.data.order import Order
from gpu_runner.data.queue import Urgency
from runs_app.core.baselines.services import ensure_baselines
from runs_app.core.checks.services import request_check
from runs_app.core.messaging import orders
from runs_app.core.runners.handing import hand_over
from runs_app.models import BaselineMeasurement, Evaluation, Runner, RunnerJob, TaskCheck
from tasks_app.models import TaskVersion
from tests import factories as make


def given(runner: Runner, now: datetime = make.NOW, /, **ask: Any) -> Order | None:
    """What a runner gets for an ask."""
    return hand_over(token=runner.token, ask=make.make_ask(runner, **ask), now=now)


def name(job: RunnerJob) -> str:
    return str(orders.name_of(job))


def names(*found: Order | None) -> list[str]:
    return [str(order.name) for order in found if order is not None]


def guest(**fields: Any) -> Runner:
    return make.make_runner(token=make.make_runner_token(name="guest", trusted=False), **fields)


def evaluation(number: int = 0, now: datetime = make.NOW, **columns: Any) -> Evaluation:
    """One that waits since then, a little less long for a higher number."""
    now += timedelta(microseconds=number)
    row = make.make_evaluation(source=f"{make.SOURCE}// {number}", now=now)
    Evaluation.objects.filter(pk=row.pk).update(**columns)
    row.refresh_from_db()
    return row


def check(version: TaskVersion | None = None, now: datetime = make.NOW) -> TaskCheck:
    """One that an admin has asked for."""
    version, user = version or make.make_task_version(), make.make_admin()
    return request_check(version=version, device=make.make_cpu(), user=user, now=now)


def baselines(version: TaskVersion) -> BaselineMeasurement:
    """Those of the CPU, which wait."""
    asked = {"version": version, "device": make.make_cpu(), "direction": "forward"}
    measurement = ensure_baselines(**asked, now=make.NOW)
    assert measurement is not None
    return measurement


def audit_of(measured_by: Runner | None = None, created_at: datetime = make.NOW) -> Evaluation:
    """An audit that waits, of a result that this runner has measured."""
    ranked = evaluation(mode="ranked")
    make.finish(ranked)
    Evaluation.objects.filter(pk=ranked.pk).update(runner=measured_by)
    audit = Evaluation.objects.filter(mode="audit").first() or Evaluation.objects.create(
        submission=ranked.submission, task_version=ranked.task_version, mode="audit",
        direction=ranked.direction, device=ranked.device, queue_place=Urgency.AUDITS.place,
        created_at=created_at, queued_at=created_at,
    )  # fmt: skip
    Evaluation.objects.filter(pk=audit.pk).update(created_at=created_at)
    BaselineMeasurement.objects.all().delete()
    return audit
