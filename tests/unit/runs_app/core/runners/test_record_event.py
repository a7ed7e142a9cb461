"""What runners report, once and more than once, early and late."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from pytest_django import DjangoCaptureOnCommitCallbacks

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import Verdict
from runs_app.core.errors import EventError
from runs_app.core.messaging.broadcast import events, logs_of_lost
from runs_app.core.runners.events import record_event
from runs_app.models import JOBS, Evaluation, EvaluationEvent, Result, Runner, RunnerJob, Status
from runs_app.submitting.live import live_view
from runs_app.submitting.services import cancel
from tests import factories as make
from tests.unit.queued import Jobs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def stage(name: str, state: str = "running", detail: str = "") -> dict[str, Any]:
    return {"stage": name, "state": state, "elapsed_s": 0.5, "detail": detail}


def say(job: RunnerJob, /, **changes: Any) -> bool:
    """Record an event as it is: nothing is handed over, and no result is believed blindly."""
    event = make.make_event(job, **changes)
    return record_event(event=event, sender=make.make_sender(), now=make.NOW)


def test_an_evaluation_runs_and_finishes() -> None:
    make.make_runner(name="host-1", boot_id="boot-7")
    evaluation = make.make_evaluation()
    result = codec.encode(make.make_result(evaluation))
    make.start(evaluation, runner="host-1", now=make.later(1))
    assert (evaluation.runner_id, evaluation.runner_boot_id) == (Runner.objects.get().pk, "boot-7")
    make.send(evaluation, EventKind.STAGE, stage("build"), seq=2, now=make.later(2))
    make.send(evaluation, EventKind.FINISHED, {"result": result}, seq=3, now=make.later(3))

    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.verdict) == (Status.FINISHED, Verdict.CORRECT)
    assert (evaluation.started_at, evaluation.finished_at) == (make.later(1), make.later(3))
    figures = ("latency_ns", "speedup_best", "speedup_eager", "speedup_compiled",
               "unlisted_speedup", "floor_fraction")  # fmt: skip
    found = [getattr(evaluation, name) for name in figures]
    assert found == [1000.0, 1.5, 2.0, 1.5, 1.5, 0.5]
    assert evaluation.latency_spread == pytest.approx(0.01)
    assert evaluation.speedup_spread == pytest.approx(0.01 * 2**0.5)
    assert evaluation.stage == ""  # of what runs alone
    assert evaluation.result.document == result
    kinds = [event.kind for event in evaluation.events.order_by("position")]
    assert kinds == ["queued", "started", "stage", "finished"]


def test_of_any_job_only_what_is_new_counts(job: RunnerJob) -> None:
    make.start(job, now=make.later(1))
    assert not make.send(job, EventKind.STARTED, {"runner": "other"}, seq=1)
    make.send(job, EventKind.STAGE, stage("build", detail="build"), seq=3)
    make.send(job, EventKind.STAGE, stage("check", detail="check"), seq=2)  # sent late
    assert make.send(job, EventKind.ALIVE, {"runner": "x"}, seq=4, now=make.later(40))
    assert not make.send(job, EventKind.ALIVE, {"runner": "x"}, seq=4, now=make.later(50))
    job.refresh_from_db()
    assert (job.stage, job.last_seq) == ("build", 4)
    assert (job.started_at, job.last_event_at) == (make.later(1), make.later(40))
    make.send(job, EventKind.LOST, {"reason": "it died"}, seq=5)
    job.refresh_from_db()
    assert (job.status, job.attempt, job.stage) == (Status.QUEUED, 2, "")
    assert (job.reason, job.last_seq) == ("it died", 0)
    late = {"seq": 6, "kind": EventKind.FINISHED, "payload": {"reason": "late"}}
    assert not say(job, attempt=1, **late)  # of an attempt that was given up
    job.refresh_from_db()
    assert (job.status, job.attempt) == (Status.QUEUED, 2)
    make.start(job)


def test_what_comes_after_a_verdict_or_a_cancel_changes_nothing() -> None:
    evaluation = make.make_finished_evaluation(Verdict.WRONG_RESULT)
    before = evaluation.events.count()
    make.send(evaluation, EventKind.ALIVE, {"runner": "x"}, seq=8)  # nor is a sign of life stored
    other = codec.encode(make.make_result(evaluation))
    assert not make.send(evaluation, EventKind.FINISHED, {"result": other}, seq=9)
    evaluation.refresh_from_db()
    assert (evaluation.verdict, evaluation.events.count()) == (Verdict.WRONG_RESULT, before)
    assert Result.objects.get().document["verdict"] == "WRONG_RESULT"
    make.start(running := make.make_evaluation(task_version=evaluation.task_version))
    cancel(evaluation=running, user=running.submission.author, now=make.NOW)
    result = codec.encode(make.make_result(running))
    make.send(running, EventKind.FINISHED, {"result": result}, seq=5)
    running.refresh_from_db()
    assert (running.status, running.verdict) == (Status.CANCELLED, "")


def test_a_lost_evaluation_is_retried_and_then_given_up(
    jobs: Jobs, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    evaluation = make.make_evaluation()
    for attempt in (1, 2, 3):
        make.start(evaluation)
        assert evaluation.attempt == attempt
        with django_capture_on_commit_callbacks(execute=True):
            make.send(evaluation, EventKind.LOST, {"runner": "x", "reason": "killed"}, seq=2)
        evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.verdict) == (Status.FINISHED, Verdict.SYSTEM_ERROR)
    assert evaluation.reason == "lost 3 times, most recently because: killed"
    assert jobs.enqueued == [f"evaluation-{evaluation.pk}-2", f"evaluation-{evaluation.pk}-3"]
    assert jobs.dropped == [f"evaluation-{evaluation.pk}-{attempt}" for attempt in (1, 2, 3)]
    finals = evaluation.events.filter(kind="finished")
    assert finals.count() == 1


def test_what_a_runners_host_has_ended_is_tried_again(
    jobs: Jobs, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    killed, broken = make.make_evaluation(), make.make_evaluation(source=f"{make.SOURCE}\n// 2")
    failed = {"verdict": Verdict.SYSTEM_ERROR, "latency_ns": None, "speedups": {}}
    for evaluation, retryable, attempts in ((killed, True, 3), (broken, False, 1)):
        for attempt in range(1, attempts + 1):
            make.start(evaluation)
            assert (evaluation.attempt, evaluation.verdict) == (attempt, "")
            log = f"Traceback {attempt}"
            said = {"attempt": attempt, "reason": "was killed", "retryable": retryable, "log": log}
            result = make.make_result(evaluation, **said, **failed)
            with django_capture_on_commit_callbacks(execute=True):
                make.send(evaluation, EventKind.FINISHED, {"result": codec.encode(result)}, seq=2)
            evaluation.refresh_from_db()
        assert (evaluation.status, evaluation.verdict) == (Status.FINISHED, "SYSTEM_ERROR")
        assert evaluation.stage == ""
        assert evaluation.reason == evaluation.result.document["reason"] == "was killed"
    assert jobs.enqueued == [f"evaluation-{killed.pk}-2", f"evaluation-{killed.pk}-3"]
    assert jobs.dropped == []  # the work-horse ends by itself, and looks at its device before
    kinds = [event.kind for event in killed.events.order_by("position")]
    again = ["started", "lost", "retried"]
    assert kinds == ["queued", *again, *again, "started", "finished"]
    assert logs_of_lost(killed) == [(1, "Traceback 1"), (2, "Traceback 2")]
    assert "Traceback" not in str(events(killed))
    for user, seen in ((make.make_admin(), 2), (killed.submission.author, 0)):
        assert len(live_view(killed, user, make.NOW).lost_logs) == seen


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"job_id": "00000000-0000-4000-8000-000000000000"}, "there is no {kind} '0000"),
        ({"job_id": "not an id"}, "'not an id' is not a job"),
        ({"job": None}, "{id}' is not a job"),
        ({"attempt": 7}, "attempt 7 of {id} hasn't started yet"),
    ],
)
def test_impossible_events_are_refused(job: RunnerJob, changes: dict[str, Any], words: str) -> None:
    make.hand_over(job)
    with pytest.raises(EventError, match=words.format(kind=job.KIND, id=job.pk)):
        say(job, **changes)
    for kind in set(JOBS) - {job.KIND}:
        with pytest.raises(EventError, match=f"there is no {kind}"):
            say(job, job=kind)
    job.refresh_from_db()
    assert job.last_seq == 0


def test_a_malformed_result_is_refused() -> None:
    evaluation = make.make_evaluation()
    document = {**codec.encode(make.make_result(evaluation)), "latency_ns": None}
    with pytest.raises(DataError, match="latency_ns"):
        make.send(evaluation, EventKind.FINISHED, {"result": document}, seq=1)
    assert not Result.objects.exists()


def test_what_a_database_cannot_hold_is_replaced() -> None:
    said = {"output": "a\0b\ud800c", "reason": "it\0broke" + "x" * 1_000_000}
    evaluation = make.make_finished_evaluation(Verdict.RUNTIME_ERROR, said)
    assert evaluation.result.document["output"] == "a\ufffdb?c"
    assert evaluation.reason.startswith("it\ufffdbroke")
    assert len(evaluation.reason) < 10_100  # without end it is cut: lists show it


def test_the_database_refuses_what_contradicts_itself_and_stores_no_event_twice() -> None:
    running, wrong, correct = (
        make.make_evaluation(), make.make_finished_evaluation(Verdict.WRONG_RESULT),
        make.make_finished_evaluation(),
    )  # fmt: skip
    make.start(running)
    for row, change in (
        (running, {"verdict": "CORRECT", "latency_ns": 1.0}),
        (running, {"status": "FINISHED", "finished_at": make.NOW}),
        (wrong, {"latency_ns": 1.0}),
        (correct, {"latency_ns": None}),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Evaluation.objects.filter(pk=row.pk).update(**change)
    event = {"position": 99, "attempt": 1, "seq": 1, "kind": "stage", "created_at": make.NOW}
    with pytest.raises(IntegrityError), transaction.atomic():
        EvaluationEvent.objects.create(evaluation=running, **event)
