"""Several writers at once: one outcome, and no quota twice used."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections, transaction

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.order import Order
from runs_app.core.checks.services import request_check
from runs_app.core.errors import NotAllowed, QuotaExceeded
from runs_app.core.messaging import orders
from runs_app.core.runners.events import record_event
from runs_app.core.runners.handing import hand_over
from runs_app.features.curation.decisions.services import retire as retire_task
from runs_app.models import Evaluation, EvaluationEvent, Result, Runner, Submission, TaskCheck
from runs_app.submitting.services import cancel
from tasks_app.models import Task
from tests import factories as make

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _without_redis(settings: Any) -> None:
    settings.REDIS_URL = settings.RUNNERS_REDIS_URL = "redis://127.0.0.1:1/0"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}


def at_once(*actions: Callable[[], Any]) -> list[Any]:
    """Run every action in a thread of its own; answers and exceptions in order."""

    def guarded(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(guarded, actions))


@pytest.mark.usefixtures("believed")
def test_a_result_a_loss_and_a_cancel_end_it_once() -> None:
    evaluation = make.make_evaluation()
    make.start(evaluation)
    user = evaluation.submission.author
    result = {"result": codec.encode(make.make_result(evaluation))}
    finished = make.make_event(evaluation, seq=2, kind=EventKind.FINISHED, payload=result)
    lost = make.make_event(evaluation, seq=3, kind=EventKind.LOST, payload={"reason": "gone"})
    sender = make.make_sender()
    answers = at_once(
        *[lambda: record_event(event=finished, sender=sender, now=make.NOW)] * 3,
        lambda: record_event(event=lost, sender=sender, now=make.NOW),
        lambda: cancel(evaluation=evaluation, user=user, now=make.NOW),
    )
    unexpected = [a for a in answers if isinstance(a, Exception)]
    assert all(isinstance(a, NotAllowed) for a in unexpected), unexpected
    evaluation.refresh_from_db()
    ends = EvaluationEvent.objects.filter(kind__in=("finished", "cancelled"))
    assert ends.count() == (1 if evaluation.is_over else 0)
    assert Result.objects.count() == (1 if evaluation.verdict else 0)
    positions = list(evaluation.events.order_by("position").values_list("position", flat=True))
    assert positions == list(range(1, evaluation.events_stored + 1))


@pytest.mark.usefixtures("believed")
def test_two_evaluations_of_one_source_that_end_at_once_share_their_score() -> None:
    version, user = make.make_task_version(), make.make_user()
    sender = make.make_sender()

    def ending(time_ns: float) -> Callable[[], Any]:
        evaluation = make.make_evaluation(mode="ranked", task_version=version, user=user)
        make.start(evaluation)
        result = codec.encode(make.make_result(evaluation, latency_ns=time_ns))
        event = make.make_event(
            evaluation, seq=2, kind=EventKind.FINISHED, payload={"result": result}
        )
        return lambda: record_event(event=event, sender=sender, now=make.NOW)

    answers = at_once(*[ending(time_ns) for time_ns in (1000.0, 500.0, 250.0)])
    assert not [a for a in answers if isinstance(a, Exception)], answers
    found = Evaluation.objects.filter(verdict="CORRECT").values_list("score", "draws")
    assert list(found) == [(pytest.approx(3.0), 3)] * 3


@pytest.mark.parametrize("by_name", [True, False])
def test_each_job_is_handed_to_one_runner(by_name: bool) -> None:
    version = make.make_task_version()
    waiting = [
        make.make_evaluation(task_version=version, source=f"{make.SOURCE}// {number}")
        for number in range(4)
    ]
    runners = [make.make_runner() for _ in range(3)]

    def asking(runner: Runner, job: Evaluation) -> Callable[[], Order | None]:
        ask = make.make_ask(runner, job=str(orders.name_of(job)) if by_name else "")
        return lambda: hand_over(token=runner.token, ask=ask, now=make.NOW)

    answers = at_once(*(asking(runner, job) for job in waiting for runner in runners))
    handed = [answer.job_id for answer in answers if isinstance(answer, Order)]
    assert sorted(handed) == sorted(str(job.pk) for job in waiting), answers
    assert answers.count(None) == len(answers) - len(waiting)
    for number, answer in enumerate(answers):
        if answer is not None:
            row = Evaluation.objects.get(pk=answer.job_id)
            assert (row.status, row.attempt) == ("RUNNING", 1)
            assert row.runner == runners[number % len(runners)]


def test_a_ticket_that_is_shown_twice_at_once_gets_one_job() -> None:
    """A runner asks again while its first ask, whose answer it did not get, is still at work."""
    version = make.make_task_version()
    for number in range(4):
        make.make_evaluation(task_version=version, source=f"{make.SOURCE}// {number}")
    runner = make.make_runner()
    ask = make.make_ask(runner)
    answers = at_once(*[lambda: hand_over(token=runner.token, ask=ask, now=make.NOW)] * 3)
    assert answers[0] is not None
    assert answers == [answers[0]] * 3
    assert Evaluation.objects.filter(status="RUNNING").count() == 1


def test_a_job_that_is_cancelled_meanwhile_is_handed_to_nobody() -> None:
    evaluation, runner = make.make_evaluation(), make.make_runner()
    user = evaluation.submission.author
    answers = at_once(
        lambda: hand_over(token=runner.token, ask=make.make_ask(runner), now=make.NOW),
        lambda: cancel(evaluation=evaluation, user=user, now=make.NOW),
    )
    assert not [a for a in answers if isinstance(a, Exception)], answers
    evaluation.refresh_from_db()
    assert evaluation.status == "CANCELLED"


def test_the_last_place_of_a_quota_is_given_once(settings: Any) -> None:
    settings.MAX_WAITING_PER_USER = 3
    version, user = make.make_task_version(), make.make_user()
    make.make_cpu()
    answers = at_once(*[lambda: make.make_submission(task_version=version, user=user)] * 6)
    assert sum(isinstance(a, Submission) for a in answers) == 3, answers
    assert sum(isinstance(a, QuotaExceeded) for a in answers) == 3
    assert Evaluation.objects.count() == 3


def test_a_check_and_a_decision_about_one_task_do_not_wait_for_each_other() -> None:
    version, admin, device = make.make_task_version(), make.make_admin(), make.make_cpu()
    both_have_begun = threading.Barrier(2)

    def held(action: Callable[[], Any]) -> None:
        """Keep what `action` locks until the other one has its locks too, where it can get them."""
        with transaction.atomic():
            action()
            with contextlib.suppress(threading.BrokenBarrierError):
                both_have_begun.wait(1)

    def check() -> None:
        request_check(version=version, device=device, user=admin, now=make.NOW)

    def retire() -> None:
        retire_task(task=version.task, user=admin, reason="too easy", now=make.NOW)

    answers = at_once(lambda: held(check), lambda: held(retire))
    assert answers == [None, None]
    assert (Task.objects.get().state, TaskCheck.objects.count()) == ("retired", 1)
