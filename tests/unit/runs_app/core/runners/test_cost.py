"""What a job costs the database: the end of an evaluation, and a runner's ask."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from runs_app.core.runners.events import record_event
from runs_app.core.runners.handing import hand_over
from runs_app.models import BaselineMeasurement, Evaluation, RunnerJob
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs", "believed")]

OTHERS = 6  # chosen: results on the board; a statement more for each breaks all bounds
OF_A_RECORD = 42  # chosen: 38 today
OF_ANOTHER = 27  # chosen: 25 today
OF_FASTER_BASELINES = 48  # chosen: 45 today, and three for each row that gets them
OF_JOINED_BASELINES = 21  # chosen: 18 today, and six for each result that waited
OF_A_CLAIM = 15  # chosen: 14 today


@pytest.fixture
def waiting(django_capture_on_commit_callbacks: Any) -> Evaluation:
    """A ranked evaluation that waits beside others which have ended."""
    version, ada = make.make_task_version(), make.make_user()
    with django_capture_on_commit_callbacks(execute=True):
        for number in range(OTHERS):
            result = {"latency_ns": 1000.0 + number}
            make.make_finished_evaluation(
                user=ada, mode="ranked", task_version=version, result=result
            )
    source = f"{make.SOURCE}// new\n"
    return make.make_evaluation(user=ada, mode="ranked", task_version=version, source=source)


def statements_of(job: RunnerJob, payload: dict[str, Any], on_commit: Any) -> int:
    """How many it takes to record the end of a job, with all that follows from it."""
    event = make.make_event(job, kind=EventKind.FINISHED, payload=payload, seq=2)
    sender = make.make_sender()
    with CaptureQueriesContext(connection) as asked, on_commit(execute=True):
        assert record_event(event=event, sender=sender, now=make.NOW)
    return len(asked)


FASTER = {"eager": make.make_measurement(1000.0), "compiled": make.make_measurement(700.0)}


@pytest.mark.parametrize(
    ("latency_ns", "baselines", "most"),
    [
        (500.0, {}, OF_A_RECORD),
        (1500.0, {}, OF_ANOTHER),
        (1500.0, {"baselines": FASTER}, OF_FASTER_BASELINES + 3 * OTHERS),
    ],
)
def test_the_end_of_a_ranked_evaluation_takes_few_statements(
    waiting: Evaluation,
    latency_ns: float,
    baselines: dict[str, Any],
    most: int,
    django_capture_on_commit_callbacks: Any,
) -> None:
    make.start(waiting)
    hidden = {"name": make.HIDDEN_WORKLOAD, "parameters": {"N": 1777}, "hidden": True}
    workloads = [make.make_workload_result(**each, **baselines) for each in ({}, hidden)]
    result = make.make_result(waiting, latency_ns=latency_ns, workloads=tuple(workloads))
    payload = {"result": codec.encode(result)}
    asked = statements_of(waiting, payload, django_capture_on_commit_callbacks)
    assert asked <= most


def test_baselines_join_many_results_with_few_statements_each(
    django_capture_on_commit_callbacks: Any,
) -> None:
    eager = {"speedups": {"eager": 2.0, "best": 2.0}}
    baselines = {"eager": make.make_measurement(2000.0)}
    hidden = {"name": make.HIDDEN_WORKLOAD, "parameters": {"N": 1777}, "hidden": True}
    workloads = [
        make.make_workload_result(**each, **eager, baselines=baselines) for each in ({}, hidden)
    ]
    result = {**eager, "unlisted_speedups": eager["speedups"], "workloads": tuple(workloads)}
    version = make.make_task_version()
    for _ in range(OTHERS):
        make.make_finished_evaluation(
            mode="ranked",
            task_version=version,
            result={**result, "pending_baselines": ("compiled",)},
        )
    job = BaselineMeasurement.objects.get()
    make.start(job)
    payload = {"report": make.baseline_report(job)}
    asked = statements_of(job, payload, django_capture_on_commit_callbacks)
    assert not Evaluation.objects.filter(awaits_baselines=True).exists()
    assert asked <= OF_JOINED_BASELINES + 6 * OTHERS


def test_a_claim_takes_few_statements(waiting: Evaluation) -> None:
    runner = make.make_runner()
    with CaptureQueriesContext(connection) as asked:
        assert hand_over(token=runner.token, ask=make.make_ask(runner), now=make.NOW)
    assert len(asked) <= OF_A_CLAIM
