"""Jobs that a worker took out of a queue and never began, because it was killed in between."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from redis import Redis

from runs_app.messaging import queues
from tests import factories as make

pytestmark = pytest.mark.django_db(transaction=True)

CALLS, DEVICE = "rq:queue:calls", "rq:queue:device-cpu"
CALL = "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def redis(redis_url: str, settings: Any) -> Iterator[Redis]:
    """The site's Redis."""
    settings.REDIS_URL = redis_url
    with Redis.from_url(redis_url) as client:
        yield client


def take(redis: Redis, queue: str) -> str:
    """Take a job as a worker does; return its id."""
    taken: Any = redis.lmove(queue, f"{queue}:intermediate")
    return str(taken.decode())


def was_seen(redis: Redis, queue: str, job: str, seconds: float) -> None:
    """Let it have been taken for so long."""
    redis.set(f"{queue}:intermediate:first_seen:{job}", time.time() - seconds)


def test_a_call_that_was_taken_waits_for_a_moment_only(redis: Redis) -> None:
    queues.enqueue_call(CALL)
    job = take(redis, CALLS)
    assert queues.waiting_calls() == {CALL}
    was_seen(redis, CALLS, job, 14)
    assert queues.waiting_calls() == {CALL}
    was_seen(redis, CALLS, job, 16)
    assert queues.waiting_calls() == set()
    queues.enqueue_call(CALL)
    take(redis, CALLS)
    assert queues.waiting_calls() == {CALL}  # its time begins anew


def test_an_evaluation_whose_job_was_taken_is_queued_again(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    job = take(redis, DEVICE)
    call_command("reconcile")
    assert redis.lrange(DEVICE, 0, -1) == []
    was_seen(redis, DEVICE, job, 16)
    call_command("reconcile")
    assert redis.lrange(DEVICE, 0, -1) == [job.encode()]
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == ("QUEUED", 1)
