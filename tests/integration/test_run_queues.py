"""Jobs that a worker took out of a queue and never began, because it was killed in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from runs_app.core.messaging import queues

pytestmark = pytest.mark.django_db(transaction=True)

CALLS = "rq:queue:calls"
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


def test_a_call_that_was_taken_and_never_begun_can_be_queued_again(redis: Redis) -> None:
    queues.enqueue_call(CALL)
    assert queues.waiting_calls() == {CALL}
    job = take(redis, CALLS)
    assert queues.waiting_calls() == set()
    queues.enqueue_call(CALL)
    assert queues.waiting_calls() == {CALL}
    assert take(redis, CALLS) == job
