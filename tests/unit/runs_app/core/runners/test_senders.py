"""A runner is believed about what it holds, and about nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.verdict import Verdict
from runs_app.core.errors import EventError, Implausible
from runs_app.core.runners.events import Sender, record_event, refuse
from runs_app.core.work import admins, lifecycle
from runs_app.models import EvaluationEvent, RunnerFlag, RunnerJob, RunnerToken, Status
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

SAID: dict[EventKind, dict[str, Any]] = {
    EventKind.STARTED: {"runner": "nobody", "at": 0.0},
    EventKind.STAGE: {"stage": "build", "state": "running", "elapsed_s": 0.5, "detail": "x"},
    EventKind.ALIVE: {},
    EventKind.FINISHED: {"reason": "it is mine"},
    EventKind.LOST: {"reason": "it is mine"},
}


def stranger() -> RunnerToken:
    return make.make_runner_token(name="stranger", trusted=False)


def record(job: RunnerJob, sender: Sender, kind: EventKind, payload: dict[str, Any]) -> Event:
    """Record an event as `ingest_events` does, and see to it if it is refused."""
    event = make.make_event(job, seq=job.last_seq + 1, kind=kind, payload=payload)
    try:
        record_event(event=event, sender=sender, now=make.NOW)
    except (DataError, EventError) as error:
        refuse(event=event, sender=sender, error=error, now=make.NOW)
        raise
    return event


def columns(job: RunnerJob) -> dict[str, Any]:
    return type(job)._default_manager.filter(pk=job.pk).values().get()


@pytest.mark.parametrize("kind", SAID)
def test_nothing_counts_of_who_does_not_hold_the_job(job: RunnerJob, kind: EventKind) -> None:
    before = columns(job)
    with pytest.raises(EventError, match="isn't working on"):  # it waits
        record(job, make.make_sender(), kind, SAID[kind])
    assert columns(job) == before
    make.start(job)
    before, events = columns(job), EvaluationEvent.objects.count()
    with pytest.raises(EventError, match=f"runner stranger isn't working on {job.KIND}-{job.pk}-1"):
        record(job, Sender(token=stranger()), kind, SAID[kind])
    assert (columns(job), EvaluationEvent.objects.count()) == (before, events)
    assert not RunnerFlag.objects.exists()


@pytest.mark.usefixtures("believed")
def test_a_forged_verdict_changes_nothing_and_the_holders_counts() -> None:
    evaluation = make.make_evaluation()
    make.start(evaluation)
    wrong = {"result": codec.encode(make.make_result(evaluation, verdict=Verdict.WRONG_RESULT))}
    with pytest.raises(EventError, match="isn't working on"):
        record(evaluation, Sender(token=stranger()), EventKind.FINISHED, wrong)
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == (Status.RUNNING, 1)
    right = {"result": codec.encode(make.make_result(evaluation))}
    record(evaluation, make.make_sender(), EventKind.FINISHED, right)
    evaluation.refresh_from_db()
    assert evaluation.verdict == Verdict.CORRECT


def test_a_runner_that_lost_a_job_cannot_end_it_for_the_next_one() -> None:
    evaluation = make.make_evaluation()
    make.start(evaluation)
    make.send(evaluation, EventKind.LOST, {"reason": "it died"}, seq=2)
    runner = make.make_runner(token=stranger(), name="next")
    evaluation.refresh_from_db()
    lifecycle.give_to_runner(evaluation, runner=runner, ticket="0" * 32, now=make.NOW)
    with pytest.raises(EventError, match=f"isn't working on evaluation-{evaluation.pk}-2"):
        record(evaluation, make.make_sender(), EventKind.LOST, SAID[EventKind.LOST])
    record(evaluation, Sender(token=stranger()), EventKind.STARTED, {})
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == (Status.RUNNING, 2)


def test_a_spool_and_a_runner_do_not_speak_for_each_other(job: RunnerJob) -> None:
    spool = Sender(spool="0123456789abcdef")
    lifecycle.give_to_spool(job, spool=spool.spool, now=make.NOW)
    for other in (make.make_sender(), Sender(spool="f" * 16), Sender(spool="")):
        with pytest.raises(EventError, match="isn't working on"):
            record(job, other, EventKind.STARTED, SAID[EventKind.STARTED])
    record(job, spool, EventKind.STARTED, SAID[EventKind.STARTED])
    mine = make.make_evaluation(source=f"{make.SOURCE}// handed over")
    make.hand_over(mine)
    for other in (spool, Sender(spool="")):
        with pytest.raises(EventError, match="isn't working on"):
            record(mine, other, EventKind.STARTED, SAID[EventKind.STARTED])


def test_the_name_that_a_runner_gives_itself_in_an_event_is_not_believed() -> None:
    evaluation = make.make_evaluation()
    make.hand_over(evaluation, "host-1")
    record(evaluation, make.make_sender(), EventKind.STARTED, {"runner": "somebody", "at": 0.0})
    assert evaluation.events.get(kind="started").payload["runner"] == "test.host-1"


def test_a_refused_result_puts_its_runner_in_doubt_and_is_measured_again() -> None:
    evaluation = make.make_evaluation()
    for attempt in (1, 2, 3):
        make.start(evaluation)
        without_evidence = {"result": codec.encode(make.make_result(evaluation))}
        with pytest.raises(Implausible):
            record(evaluation, make.make_sender(), EventKind.FINISHED, without_evidence)
        evaluation.refresh_from_db()
        if attempt < 3:
            assert (evaluation.status, evaluation.attempt) == (Status.QUEUED, attempt + 1)
            assert evaluation.reason.startswith("a report from runner test was refused: result.")
        flag = RunnerFlag.objects.get()  # of the same reason one is enough
        assert (flag.token.name, flag.evaluation, flag.cleared_at) == ("test", evaluation, None)
        assert flag.reason.startswith("result.")
    assert (evaluation.status, evaluation.verdict) == (Status.FINISHED, Verdict.SYSTEM_ERROR)
    assert not hasattr(evaluation, "result")


def test_what_cannot_be_read_is_measured_again_but_is_no_lie() -> None:
    evaluation = make.make_evaluation()
    make.start(evaluation)
    with pytest.raises(EventError, match="'lunch' is not a stage"):
        record(evaluation, make.make_sender(), EventKind.STAGE, {"stage": "lunch"})
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == (Status.RUNNING, 1)  # that ends none
    with pytest.raises(DataError):
        record(evaluation, make.make_sender(), EventKind.FINISHED, {"result": {"verdict": "?"}})
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == (Status.QUEUED, 2)
    assert not RunnerFlag.objects.exists()


def test_a_runner_is_put_in_doubt_once_for_each_reason_until_somebody_has_looked() -> None:
    token = stranger()
    for number in range(admins.MOST + 5):
        for _ in range(2):
            admins.flag(token, f"reason {number}", now=make.NOW)
    assert RunnerFlag.objects.count() == admins.MOST
    RunnerFlag.objects.update(cleared_at=make.NOW)
    admins.flag(token, "reason 1", now=make.later(1))
    assert RunnerFlag.objects.filter(cleared_at=None).count() == 1
