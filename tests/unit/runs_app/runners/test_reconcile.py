"""Work that nobody does any more is found, whatever its kind, and nothing else is touched."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from runs_app.messaging import queues
from runs_app.messaging.queues import JobState, JobView
from runs_app.models import Evaluation, RunnerJob, Status
from runs_app.runners.events import record_event
from runs_app.runners.reconcile import reconcile
from tests import factories as make
from tests.unit.queued import Jobs

pytestmark = pytest.mark.django_db

LONG_AGO = make.NOW - timedelta(days=1)


def test_a_forgotten_job_is_queued_again(
    jobs: Jobs,
    job: RunnerJob,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    jobs.states[queues.job_id(job)] = JobView(JobState.MISSING)
    with django_capture_on_commit_callbacks(execute=True):
        assert reconcile(now=make.later(60), listening_since=LONG_AGO) == 1
    job.refresh_from_db()
    assert (job.status, job.attempt, job.queued_at) == (Status.QUEUED, 1, make.later(60))
    assert jobs.enqueued == [f"{job.KIND}-{job.pk}-1"]
    # it has just been queued: not again at once
    assert reconcile(now=make.later(65), listening_since=LONG_AGO) == 0


def test_it_is_said_why_an_evaluation_was_queued_again(jobs: Jobs) -> None:
    evaluation = make.make_evaluation()
    jobs.states[queues.job_id(evaluation)] = JobView(JobState.MISSING)
    assert reconcile(now=make.later(60), listening_since=LONG_AGO) == 1
    event = evaluation.events.get(kind="requeued")
    assert event.payload == {"reason": "its job was not in the queue"}


def test_many_forgotten_jobs_are_queued_again_by_parts_the_oldest_first(jobs: Jobs) -> None:
    rows = [make.make_evaluation() for _ in range(3)]
    for row, second in zip(rows, (2, 0, 1), strict=True):
        Evaluation.objects.filter(pk=row.pk).update(queued_at=make.later(second))
        jobs.states[queues.job_id(row)] = JobView(JobState.MISSING)
    assert reconcile(now=make.later(60), listening_since=LONG_AGO, most=2) == 2
    rows[0].refresh_from_db()
    assert rows[0].queued_at == make.later(2)
    assert reconcile(now=make.later(61), listening_since=LONG_AGO, most=2) == 1


def test_a_waiting_or_young_job_is_left_alone(jobs: Jobs, job: RunnerJob) -> None:
    assert reconcile(now=make.later(3600), listening_since=LONG_AGO) == 0
    jobs.states[queues.job_id(job)] = JobView(JobState.MISSING)
    assert reconcile(now=make.later(5), listening_since=LONG_AGO) == 0
    assert reconcile(now=make.later(60), listening_since=make.later(55)) == 0


@pytest.mark.parametrize("state", [JobState.STARTED, JobState.ENDED])
def test_a_job_that_ran_without_a_word_is_retried(
    jobs: Jobs, job: RunnerJob, state: JobState
) -> None:
    jobs.states[queues.job_id(job)] = JobView(state, make.later(1000))
    # it waited for long, which is no fault: what counts is the time since the job began or ended
    assert reconcile(now=make.later(1059), listening_since=LONG_AGO) == 0
    assert reconcile(now=make.later(1061), listening_since=LONG_AGO) == 1
    job.refresh_from_db()
    assert (job.status, job.attempt) == (Status.QUEUED, 2)
    assert "no event came for 60 s" in job.reason


def test_silence_while_nobody_listened_proves_nothing(jobs: Jobs, job: RunnerJob) -> None:
    make.start(job)
    assert reconcile(now=make.later(600), listening_since=make.later(590)) == 0
    job.refresh_from_db()
    assert job.status == Status.RUNNING
    assert reconcile(now=make.later(660), listening_since=make.later(590)) == 1


def test_a_silent_job_is_retried_and_given_up_at_last(jobs: Jobs, job: RunnerJob) -> None:
    for number in range(3):
        begun = make.later(1000 * number)
        make.start(job, now=begun)
        soon, late = begun + timedelta(seconds=59), begun + timedelta(seconds=61)
        assert reconcile(now=soon, listening_since=LONG_AGO) == 0
        assert reconcile(now=late, listening_since=LONG_AGO) == 1
        job.refresh_from_db()
    assert (job.status, job.attempt, job.finished_at) == (Status.FINISHED, 3, late)
    assert job.reason.startswith("lost 3 times; the last time: ")
    assert "fell silent for more than 60 s" in job.reason
    assert reconcile(now=make.later(9000), listening_since=LONG_AGO) == 0


def test_a_job_that_every_runner_refuses_ends_soon_with_the_reason(
    jobs: Jobs, job: RunnerJob
) -> None:
    refusal = "'filter_task' is not a function that this worker runs"
    for number in range(1, 4):
        view = JobView(JobState.ENDED, make.later(20 * number), refusal)
        jobs.states[f"{job.KIND}-{job.pk}-{number}"] = view
        now = make.later(20 * number + 15)
        assert reconcile(now=now, listening_since=LONG_AGO) == 1
    job.refresh_from_db()
    assert job.status == Status.FINISHED
    assert job.reason.startswith("lost 3 times; the last time: a runner of cpu refused it")
    assert refusal in job.reason
    assert "update it" in job.reason


@pytest.mark.parametrize(
    ("change", "word"), [({"boot_id": "boot-2"}, "restarted"), ({"state": "stopped"}, "stopped")]
)
def test_work_of_a_runner_that_is_gone_is_retried(
    jobs: Jobs, job: RunnerJob, change: dict[str, str], word: str
) -> None:
    record_event(event=make.make_heartbeat(), now=make.NOW)
    waits = make.make_evaluation()
    make.start(job, runner="host-1")
    record_event(event=make.make_heartbeat(), now=make.later(5))
    job.refresh_from_db()
    assert job.status == Status.RUNNING
    record_event(event=make.make_heartbeat(**change), now=make.later(9))
    job.refresh_from_db()
    waits.refresh_from_db()
    assert (job.status, job.attempt, waits.attempt) == (Status.QUEUED, 2, 1)
    assert job.reason == f"runner host-1 was {word}"
