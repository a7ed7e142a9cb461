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
from runs_app.checks.services import request_check
from runs_app.errors import NotAllowed, QuotaExceeded
from runs_app.models import Evaluation, EvaluationEvent, Result, Submission, TaskCheck
from runs_app.runners.events import record_event
from runs_app.submissions.services import cancel
from tasks_app.curation.decisions.services import retire as retire_task
from tasks_app.models import Task
from tests import factories as make

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _without_redis(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
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


def test_a_result_a_loss_and_a_cancel_end_it_once() -> None:
    evaluation = make.make_evaluation()
    make.start(evaluation)
    user = evaluation.submission.author
    result = {"result": codec.encode(make.make_result(evaluation))}
    finished = make.make_event(evaluation, seq=2, kind=EventKind.FINISHED, payload=result)
    lost = make.make_event(evaluation, seq=3, kind=EventKind.LOST, payload={"reason": "gone"})
    answers = at_once(
        *[lambda: record_event(event=finished, now=make.NOW)] * 3,
        lambda: record_event(event=lost, now=make.NOW),
        lambda: cancel(evaluation=evaluation, user=user, now=make.NOW),
    )
    unexpected = [a for a in answers if isinstance(a, Exception)]
    assert all(isinstance(a, NotAllowed) for a in unexpected), unexpected
    evaluation.refresh_from_db()
    ends = EvaluationEvent.objects.filter(kind__in=("finished", "cancelled"), ignored=False)
    assert ends.count() == (1 if evaluation.is_over else 0)
    assert Result.objects.count() == (1 if evaluation.verdict else 0)
    positions = list(evaluation.events.order_by("position").values_list("position", flat=True))
    assert positions == list(range(1, evaluation.events_stored + 1))


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
