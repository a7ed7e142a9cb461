"""A kind of job that only this test knows: its model, and a line in `JOBS`, is all it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import pytest
from django.db import connection, models
from django.db.models import Q
from django.test.utils import isolate_apps
from django.utils.module_loading import import_string

from gpu_runner.data.event import EventKind
from gpu_runner.data.queue import Urgency
from runs_app.core.runners.handing import hand_over
from runs_app.core.work import lifecycle
from runs_app.models import JOBS, RunnerJob, Status
from tests import factories as make
from tests.unit.queued import Jobs

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True, kw_only=True)
class DoubleRequest:
    """Asks what twice a number is."""

    KIND: ClassVar[str] = "double"

    number: int


@lifecycle.by_report
def finish(job: Any, report: Any, now: datetime) -> None:
    job.doubled = report["doubled"]
    lifecycle.end(job, Status.FINISHED, {}, now=now)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, jobs: Jobs) -> Iterator[Any]:
    """One that waits, of a model with a table of its own."""
    with isolate_apps("runs_app"):

        class Double(RunnerJob):
            KIND = DoubleRequest.KIND
            FINISH = f"{__name__}.finish"

            number = models.IntegerField()
            doubled = models.IntegerField(null=True)

            class Meta(RunnerJob.Meta):
                app_label = "runs_app"

            def request(self) -> DoubleRequest:
                return DoubleRequest(number=self.number)

    monkeypatch.setitem(JOBS, Double.KIND, Double)
    with connection.schema_editor() as editor:
        editor.create_model(Double)
    moments = {"created_at": make.NOW, "queued_at": make.NOW}
    row = Double._default_manager.create(
        number=21, queue_place=Urgency.RUNS.place, device=make.make_cpu(), **moments
    )
    lifecycle.queue(row, now=make.NOW)
    yield row
    with connection.schema_editor() as editor:
        editor.delete_model(Double)


def test_a_job_of_a_new_kind_lives_from_its_queue_to_its_end(job: Any, jobs: Jobs) -> None:
    assert jobs.waiting("cpu") == {f"double-{job.pk}-1"}
    runner = make.make_runner()
    order = hand_over(token=runner.token, ask=make.make_ask(runner), now=make.NOW)
    assert order is not None
    assert (order.kind, order.request) == ("double", {"number": 21})
    make.send(job, EventKind.STARTED, {}, seq=1)
    make.send(job, EventKind.STAGE, {"detail": "doubles it"}, seq=2)
    assert [row.stage for row in lifecycle.find(Q(status=Status.RUNNING))] == ["doubles it"]
    make.send(job, EventKind.LOST, {"reason": "killed"}, seq=3)
    job.refresh_from_db()
    assert (job.status, job.attempt, job.reason) == (Status.QUEUED, 2, "killed")
    make.send(job, EventKind.FINISHED, {"report": {"doubled": 42}})
    job.refresh_from_db()
    assert (job.status, job.doubled) == (Status.FINISHED, 42)
    type(job)._default_manager.update(status=Status.QUEUED, finished_at=None, last_seq=0)
    make.send(job, EventKind.FINISHED, {"reason": "no such number"})
    job.refresh_from_db()
    assert (job.status, job.reason) == (Status.FINISHED, "no such number")


@pytest.mark.parametrize("model", JOBS.values())
def test_what_follows_from_an_end_is_found(model: type[RunnerJob]) -> None:
    for path in filter(None, (model.FINISH, model.ENDED)):
        assert callable(import_string(path))
