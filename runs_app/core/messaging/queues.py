"""The site's own RQ queues: steps of runs, calls, and jobs of features, spoken to in JSON."""

from __future__ import annotations

import functools
import logging

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError
from rq import Queue, Worker
from rq.job import Job
from rq.serializers import JSONSerializer

log = logging.getLogger(__name__)

ADVANCE_FUNCTION = "runs_app.jobs.advance_run"
CALL_FUNCTION = "runs_app.jobs.answer_call"
RUNS_QUEUE, CALLS_QUEUE = "runs", "calls"
_ADVANCE_TIMEOUT_S = 300
_CALL_TIMEOUT_S = 2 * 3600  # a call ends itself after one hour
_ADVANCE_MARK_S = 30  # so long at most does a step that never began keep another from the queue
_FAILURE_TTL_S = 24 * 3600
MOST_FAILED = 100  # chosen: of a queue; when more fail, something is broken for all of them
_ANSWER_TIMEOUT_S = 10  # longer than any blocking read, so that a hung Redis hangs no page


def connection() -> Redis:
    """Connection to the site's own Redis, which no runner reaches."""
    return connected(settings.REDIS_URL)


@functools.cache
def connected(url: str) -> Redis:
    """One connection a process to the Redis at that address."""
    return Redis.from_url(url, socket_connect_timeout=5, socket_timeout=_ANSWER_TIMEOUT_S)


def _queue(name: str) -> Queue:
    return Queue(name, connection=connection(), serializer=JSONSerializer)


def _enqueue(
    name: str, function: str, about: object, *, timeout_s: int, job: str | None = None
) -> bool:
    """Queue work of the site on the row whose id is `about`; False if Redis can't be reached."""
    words = f"{function.rpartition('.')[2]} {about}"
    try:
        _queue(name).enqueue(
            function,
            args=(str(about),),
            job_id=job,
            job_timeout=timeout_s,
            result_ttl=0,
            failure_ttl=_FAILURE_TTL_S,
            description=words,
        )
    except RedisError as error:
        log.warning("%s is waiting for Redis: %s", words, error)
        return False
    return True


def enqueue_advance(run_id: object) -> bool:
    """Queue a run's next step, unless one waits that has not begun; call it after the commit.

    False if Redis could not be reached: then `reconcile_runs` queues it later.
    """
    try:
        if not connection().set(_mark(run_id), 1, nx=True, ex=_ADVANCE_MARK_S):
            return True
    except RedisError as error:
        log.warning("run %s is waiting for Redis: %s", run_id, error)
        return False
    return _enqueue(RUNS_QUEUE, ADVANCE_FUNCTION, run_id, timeout_s=_ADVANCE_TIMEOUT_S)


def advance_begins(run_id: object) -> None:
    """From now on a new step may be queued: call it before this one reads anything."""
    try:
        connection().delete(_mark(run_id))
    except RedisError as error:
        log.warning("the next step of run %s may be delayed: %s", run_id, error)


def enqueue_behind_steps(function: str, about: object, *, timeout_s: int) -> bool:
    """Queue work on a row behind the runs' steps; False if Redis could not be reached."""
    return _enqueue(RUNS_QUEUE, function, about, timeout_s=timeout_s)


def enqueue_call(call_id: object) -> bool:
    """Queue a call of a language model; a second job of one call does nothing.

    False if Redis could not be reached: then `reconcile_runs` queues it later.
    """
    return enqueue_beside_runs("call", CALL_FUNCTION, call_id, timeout_s=_CALL_TIMEOUT_S)


def enqueue_beside_runs(kind: str, function: str, about: object, *, timeout_s: int) -> bool:
    """Queue work on a row that waits for nothing of ours; False if Redis could not be reached."""
    return _enqueue(CALLS_QUEUE, function, about, timeout_s=timeout_s, job=f"{kind}-{about}")


def waiting_calls() -> set[str]:
    """Ids of the calls whose jobs are in the queue; raises `RedisError` without Redis."""
    jobs = _queue(CALLS_QUEUE).job_ids
    return {job.removeprefix("call-") for job in jobs}


def failed_jobs() -> list[Job]:
    """Jobs of the site's workers that failed and are still kept; none without Redis."""
    found: list[Job | None] = []
    try:
        for name in settings.RQ_QUEUES:
            failed = _queue(name).failed_job_registry.get_job_ids(end=MOST_FAILED - 1, desc=True)
            found += Job.fetch_many(failed, connection(), JSONSerializer)
    except RedisError as error:
        log.warning("failed jobs can't be read without Redis: %s", error)
    return [job for job in found if job is not None]


def has_worker(name: str) -> bool:
    """Whether a worker listens to that queue; False without Redis."""
    try:
        return Worker.count(queue=_queue(name)) > 0
    except RedisError:
        return False


def _mark(run_id: object) -> str:
    return f"kbench:advance:{run_id}"
