"""The only enqueuer: one RQ queue for each device, spoken to in JSON."""

from __future__ import annotations

import functools
import logging
from enum import StrEnum

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError
from rq import Queue
from rq.command import send_stop_job_command
from rq.exceptions import InvalidJobOperation, NoSuchJobError
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.verdict import Mode
from runs_app.models import Evaluation

log = logging.getLogger(__name__)

JOB_FUNCTION = "gpu_runner.daemon.jobs.evaluate"
_RESULT_TTL_S = 3600
_FAILURE_TTL_S = 24 * 3600


class JobState(StrEnum):
    """What RQ knows of an evaluation's job."""

    MISSING = "missing"  # Redis was emptied, or the job never got there
    WAITING = "waiting"
    STARTED = "started"
    ENDED = "ended"


def connection() -> Redis:
    """Connection to the site's Redis."""
    return _connection(settings.REDIS_URL)


@functools.cache
def _connection(url: str) -> Redis:
    return Redis.from_url(url, socket_connect_timeout=5, socket_keepalive=True)


def queue(device_slug: str) -> Queue:
    """The queue of a device."""
    return Queue(f"device-{device_slug}", connection=connection(), serializer=JSONSerializer)


def job_id(evaluation: Evaluation, attempt: int | None = None) -> str:
    """Id of the job of one attempt (the current one if left out)."""
    return f"evaluation-{evaluation.pk}-{attempt or evaluation.attempt}"


def request_of(evaluation: Evaluation) -> EvaluationRequest:
    """Everything that a runner needs to know of the evaluation."""
    return EvaluationRequest(
        evaluation_id=str(evaluation.pk),
        task=evaluation.task_version.data,
        solution=evaluation.submission.solution,
        mode=Mode(evaluation.mode),
        device=evaluation.device_id,
        attempt=evaluation.attempt,
    )


def enqueue(evaluation: Evaluation) -> bool:
    """Queue the current attempt; call it after the commit.

    False if Redis could not be reached: then `reconcile` queues it later.
    """
    try:
        queue(evaluation.device_id).enqueue(
            JOB_FUNCTION,
            args=(codec.encode(request_of(evaluation)),),
            job_id=job_id(evaluation),
            job_timeout=settings.JOB_TIMEOUT_S,
            result_ttl=_RESULT_TTL_S,
            failure_ttl=_FAILURE_TTL_S,
            description=f"evaluate {evaluation.pk} attempt {evaluation.attempt}",
        )
    except RedisError as error:
        log.warning("evaluation %s waits for Redis: %s", evaluation.pk, error)
        return False
    return True


def drop(evaluation: Evaluation, attempt: int) -> None:
    """Take an attempt's job out of the queue, or stop the work-horse that has begun it."""
    try:
        job = _fetch(job_id(evaluation, attempt))
        if job is None:
            return
        if job.get_status() == JobStatus.STARTED:
            send_stop_job_command(connection(), job.id, serializer=JSONSerializer)
        else:
            job.cancel()
    except (NoSuchJobError, InvalidJobOperation):
        return  # it ended, or its worker is gone, in the meantime
    except RedisError as error:
        log.warning("job of evaluation %s attempt %d stays: %s", evaluation.pk, attempt, error)


def state(evaluation: Evaluation) -> JobState:
    """What RQ knows of the current attempt's job; raises `RedisError` without Redis."""
    job = _fetch(job_id(evaluation))
    status = job.get_status() if job is not None else None
    if job is None or status is None:
        return JobState.MISSING
    if status in (JobStatus.QUEUED, JobStatus.DEFERRED, JobStatus.SCHEDULED):
        return JobState.WAITING if job.get_position() is not None else JobState.MISSING
    return JobState.STARTED if status == JobStatus.STARTED else JobState.ENDED


def _fetch(identity: str) -> Job | None:
    try:
        return Job.fetch(identity, connection=connection(), serializer=JSONSerializer)
    except NoSuchJobError:
        return None
