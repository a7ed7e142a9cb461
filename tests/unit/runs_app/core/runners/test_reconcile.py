"""Work that nobody does any more is found, whatever its kind, and nothing else is touched."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from gpu_runner.data.event import EventKind
from runs_app.core.messaging import orders
from runs_app.core.runners.reconcile import reconcile
from runs_app.models import Evaluation, RunnerJob, Status
from tests import factories as make
from tests.unit.queued import Jobs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

LONG_AGO = make.NOW - timedelta(days=1)


def test_a_forgotten_job_is_queued_again(
    jobs: Jobs, job: RunnerJob, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    jobs.missing.add(str(orders.name_of(job)))
    with django_capture_on_commit_callbacks(execute=True):
        assert reconcile(now=make.later(60), listening_since=LONG_AGO) == 1
    job.refresh_from_db()
    assert (job.status, job.attempt, job.queued_at) == (Status.QUEUED, 1, make.later(60))
    assert jobs.enqueued == [f"{job.KIND}-{job.pk}-1"]
    if isinstance(job, Evaluation):
        event = job.events.get(kind="requeued")
        assert event.payload == {"reason": "its job was not in the queue"}
    # it has just been queued: not again at once
    assert reconcile(now=make.later(65), listening_since=LONG_AGO) == 0


def test_many_forgotten_jobs_are_queued_again_by_parts_the_oldest_first(jobs: Jobs) -> None:
    rows = [make.make_evaluation() for _ in range(3)]
    for row, second in zip(rows, (2, 0, 1), strict=True):
        Evaluation.objects.filter(pk=row.pk).update(queued_at=make.later(second))
        jobs.missing.add(str(orders.name_of(row)))
    assert reconcile(now=make.later(60), listening_since=LONG_AGO, most=2) == 2
    rows[0].refresh_from_db()
    assert rows[0].queued_at == make.later(2)
    assert reconcile(now=make.later(61), listening_since=LONG_AGO, most=2) == 1


def test_a_waiting_or_young_job_is_left_alone(jobs: Jobs, job: RunnerJob) -> None:
    assert reconcile(now=make.later(3600), listening_since=LONG_AGO) == 0
    jobs.missing.add(str(orders.name_of(job)))
    assert reconcile(now=make.later(5), listening_since=LONG_AGO) == 0
    assert reconcile(now=make.later(60), listening_since=make.later(55)) == 0


def test_a_job_of_which_no_word_came_is_retried(job: RunnerJob) -> None:
    """Nobody took the answer to the ask for it; its time counts from when it was handed over."""
    make.hand_over(job, now=make.later(1000))
    assert reconcile(now=make.later(1059), listening_since=LONG_AGO) == 0
    assert reconcile(now=make.later(1061), listening_since=LONG_AGO) == 1
    job.refresh_from_db()
    assert (job.status, job.attempt) == (Status.QUEUED, 2)
    assert job.reason == "test.nobody was silent for more than 60 s"


def test_silence_while_nobody_listened_or_read_proves_nothing(job: RunnerJob) -> None:
    make.start(job)
    assert reconcile(now=make.later(600), listening_since=make.later(590)) == 0
    facts = {"now": make.later(660), "listening_since": make.later(590)}
    assert reconcile(**facts, unheard=[make.make_runner_token()]) == 0
    job.refresh_from_db()
    assert job.status == Status.RUNNING
    assert reconcile(**facts, unheard=[make.make_runner_token(name="other")]) == 1


def test_a_job_that_takes_for_ever_is_retried(job: RunnerJob, settings: Any) -> None:
    """Its runner says that it is alive, and would say so for years."""
    settings.JOB_TIMEOUT_S = 600
    make.start(job)
    for seq, second in enumerate((300, 600, 719), start=2):
        make.send(job, EventKind.ALIVE, {}, seq=seq, now=make.later(second))
        assert reconcile(now=make.later(second), listening_since=LONG_AGO) == 0
    make.send(job, EventKind.ALIVE, {}, seq=5, now=make.later(720))
    assert reconcile(now=make.later(721), listening_since=LONG_AGO) == 1
    job.refresh_from_db()
    assert job.attempt == 2
    assert job.reason == "test.nobody worked on it for longer than 600 s"


def test_a_silent_job_is_retried_and_given_up_at_last(job: RunnerJob) -> None:
    for number in range(3):
        begun = make.later(1000 * number)
        make.start(job, now=begun)
        soon, late = begun + timedelta(seconds=59), begun + timedelta(seconds=61)
        assert reconcile(now=soon, listening_since=LONG_AGO) == 0
        assert reconcile(now=late, listening_since=LONG_AGO) == 1
        job.refresh_from_db()
    assert (job.status, job.attempt, job.finished_at) == (Status.FINISHED, 3, late)
    assert job.reason.startswith("lost 3 times, most recently because: ")
    assert "was silent for more than 60 s" in job.reason
    assert reconcile(now=make.later(9000), listening_since=LONG_AGO) == 0


@pytest.mark.parametrize(
    ("change", "word"), [({"boot_id": "boot-2"}, "restarted"), ({"state": "stopped"}, "stopped")]
)
def test_work_of_a_gone_runner_is_retried(
    job: RunnerJob, change: dict[str, str], word: str
) -> None:
    make.beat()
    waits = make.make_evaluation()
    make.start(job, runner="host-1")
    make.beat(now=make.later(5))
    job.refresh_from_db()
    assert job.status == Status.RUNNING
    make.beat(now=make.later(9), **change)
    job.refresh_from_db()
    waits.refresh_from_db()
    assert (job.status, job.attempt, waits.attempt) == (Status.QUEUED, 2, 1)
    assert job.reason == f"runner test.host-1 was {word}"


def test_a_job_that_its_runner_leaves_out_for_long_is_retried(job: RunnerJob) -> None:
    make.beat()
    make.hand_over(job, "host-1")
    name = str(orders.name_of(job))
    make.beat(now=make.later(5))
    assert reconcile(now=make.later(55), listening_since=LONG_AGO) == 0  # it is not heard

    def attempt_after(second: float, *current: str, listening_since: float = -999) -> int:
        make.beat(now=make.later(second), current=current)
        reconcile(now=make.later(second), listening_since=make.later(listening_since))
        job.refresh_from_db()
        return job.attempt

    assert attempt_after(29) == 1  # the answer may have got lost: it is asked for again
    assert attempt_after(31, name) == 1
    make.send(job, EventKind.ALIVE, {}, seq=1, now=make.later(40))
    assert attempt_after(69) == 1
    assert attempt_after(71, listening_since=60) == 1  # what was said meanwhile is not read yet
    assert attempt_after(72, f"{name}1", "evaluation-x-1") == 2
    assert job.reason == "runner test.host-1 is no longer working on it"
