"""Work that nobody does any more is found, and nothing else is touched."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from runs_app.messaging import queues
from runs_app.messaging.queues import JobState, JobView
from runs_app.models import Status
from runs_app.runners.reconcile import reconcile
from tests import factories as make
from tests.unit.queued import Jobs

pytestmark = pytest.mark.django_db

LONG_AGO = make.NOW - timedelta(days=1)


def test_a_forgotten_job_is_queued_again(
    jobs: Jobs, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    evaluation = make.make_evaluation()
    jobs.states[queues.job_id(evaluation)] = JobView(JobState.MISSING)
    with django_capture_on_commit_callbacks(execute=True):
        assert reconcile(now=make.later(60), listening_since=LONG_AGO) == 1
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == ("QUEUED", 1)
    assert jobs.enqueued == [f"evaluation-{evaluation.pk}-1"]
    event = evaluation.events.get(kind="requeued")
    assert event.payload == {"reason": "its job was not in the queue"}
    # it has just been queued: not again at once
    assert reconcile(now=make.later(65), listening_since=LONG_AGO) == 0


def test_a_waiting_or_young_job_is_left_alone(jobs: Jobs) -> None:
    evaluation = make.make_evaluation()
    assert reconcile(now=make.later(3600), listening_since=LONG_AGO) == 0
    jobs.states[queues.job_id(evaluation)] = JobView(JobState.MISSING)
    assert reconcile(now=make.later(5), listening_since=LONG_AGO) == 0
    assert reconcile(now=make.later(60), listening_since=make.later(55)) == 0


@pytest.mark.parametrize("state", [JobState.STARTED, JobState.ENDED])
def test_a_job_that_ran_without_a_word_is_retried(jobs: Jobs, state: JobState) -> None:
    evaluation = make.make_evaluation()
    jobs.states[queues.job_id(evaluation)] = JobView(state, make.later(1000))
    # it waited for long, which is no fault: what counts is the time since the job began or ended
    assert reconcile(now=make.later(1059), listening_since=LONG_AGO) == 0
    assert reconcile(now=make.later(1061), listening_since=LONG_AGO) == 1
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == ("QUEUED", 2)
    assert "no event came for 60 s" in evaluation.reason


def test_a_silent_evaluation_is_retried(jobs: Jobs) -> None:
    evaluation = make.make_evaluation()
    make.start(evaluation)
    assert reconcile(now=make.later(59), listening_since=LONG_AGO) == 0
    assert reconcile(now=make.later(61), listening_since=LONG_AGO) == 1
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == ("QUEUED", 2)
    assert "fell silent for more than 60 s" in evaluation.reason


def test_silence_while_nobody_listened_proves_nothing(jobs: Jobs) -> None:
    evaluation = make.make_evaluation()
    make.start(evaluation)
    assert reconcile(now=make.later(600), listening_since=make.later(590)) == 0
    evaluation.refresh_from_db()
    assert evaluation.status == Status.RUNNING
    assert reconcile(now=make.later(660), listening_since=make.later(590)) == 1


def test_it_ends_as_a_system_error_at_last(jobs: Jobs) -> None:
    evaluation = make.make_evaluation()
    for round_number in range(3):
        make.start(evaluation, now=make.later(1000 * round_number))
        now = make.later(1000 * round_number + 500)
        assert reconcile(now=now, listening_since=LONG_AGO) == 1
        evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.verdict) == ("FINISHED", "SYSTEM_ERROR")
    assert evaluation.reason.startswith("lost 3 times")
    assert reconcile(now=make.later(9000), listening_since=LONG_AGO) == 0
