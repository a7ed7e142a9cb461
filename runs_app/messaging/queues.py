"""The only enqueuer: RQ queues of each device by urgency, two for runs, spoken to in JSON."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError
from rq import Queue, Worker
from rq.command import send_stop_job_command
from rq.exceptions import InvalidJobOperation, NoSuchJobError
from rq.intermediate_queue import IntermediateQueue
from rq.job import Job as RqJob
from rq.job import JobStatus
from rq.serializers import JSONSerializer

from gpu_runner.data import codec
from gpu_runner.data.baselines import BaselineRequest
from gpu_runner.data.check import CheckRequest
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.event import REFUSED, STEERING
from gpu_runner.data.queue import Urgency, queue_name
from gpu_runner.data.verdict import Direction, Mode
from runs_app.models import BaselineMeasurement, Evaluation, Runner, RunnerJob, TaskCheck

log = logging.getLogger(__name__)

EVALUATE_FUNCTION = "gpu_runner.daemon.jobs.evaluate"
CHECK_FUNCTION = "gpu_runner.daemon.jobs.filter_task"
BASELINES_FUNCTION = "gpu_runner.daemon.jobs.measure_baselines"
ADVANCE_FUNCTION = "runs_app.jobs.advance_run"
CALL_FUNCTION = "runs_app.jobs.answer_call"
DELIVER_FUNCTION = "runs_app.jobs.deliver_message"
RUNS_QUEUE, CALLS_QUEUE = "runs", "calls"
_ADVANCE_TIMEOUT_S = 300
_CALL_TIMEOUT_S = 2 * 3600  # a call ends itself after one hour
_DELIVERY_TIMEOUT_S = 90
_ADVANCE_MARK_S = 30  # so long at most does a step that never began keep another from the queue
_TAKEN = timedelta(seconds=15)  # a worker begins with a job that it has taken much sooner
_BEFORE_ITS_START = (JobStatus.QUEUED, JobStatus.DEFERRED, JobStatus.SCHEDULED)
_RESULT_TTL_S = 3600
_FAILURE_TTL_S = 24 * 3600
_ANSWER_TIMEOUT_S = 10  # longer than any blocking read, so that a hung Redis hangs no page


class JobState(StrEnum):
    """What RQ knows of a job."""

    MISSING = "missing"  # Redis was emptied, or the job never got there
    WAITING = "waiting"
    STARTED = "started"
    ENDED = "ended"


@dataclass(frozen=True)
class JobView:
    """A job's state, and since when it has had it where RQ knows that.

    refusal: why its runner would not run it; empty unless it ended so.
    """

    state: JobState
    since: datetime | None = None
    refusal: str = ""


def connection() -> Redis:
    """Connection to the site's Redis."""
    return _connection(settings.REDIS_URL)


@functools.cache
def _connection(url: str) -> Redis:
    return Redis.from_url(url, socket_connect_timeout=5, socket_timeout=_ANSWER_TIMEOUT_S)


def failure() -> str:
    """Why nothing can be queued now; empty if something can."""
    try:
        connection().ping()
    except RedisError as error:
        return (
            f"the Redis that REDIS_URL names does not answer ({error}): nothing was queued or"
            " stored; set REDIS_URL to the address that `make up` prints, and try again"
        )
    return ""


def queue(device_slug: str, urgency: Urgency = Urgency.PEOPLE) -> Queue:
    """One of a device's queues."""
    return _queue(queue_name(device_slug, urgency))


def _queue(name: str) -> Queue:
    return Queue(name, connection=connection(), serializer=JSONSerializer)


def _enqueue(
    name: str, function: str, about: object, *, timeout_s: int, job: str | None = None
) -> None:
    """Queue work of the site on the row whose id is `about`."""
    _queue(name).enqueue(
        function,
        args=(str(about),),
        job_id=job,
        job_timeout=timeout_s,
        result_ttl=0,
        failure_ttl=_FAILURE_TTL_S,
        description=f"{function.rpartition('.')[2]} {about}",
    )


def job_id(job: RunnerJob, attempt: int | None = None) -> str:
    """Id of RQ's job for one attempt (the current one if left out)."""
    return f"{job.KIND}-{job.pk}-{attempt or job.attempt}"


def request_of(evaluation: Evaluation) -> EvaluationRequest:
    """Everything that a runner needs to know of the evaluation."""
    return EvaluationRequest(
        evaluation_id=str(evaluation.pk),
        task=evaluation.task_version.data,
        solution=evaluation.submission.solution,
        mode=Mode(evaluation.mode),
        device=evaluation.device_id,
        attempt=evaluation.attempt,
        urgency=evaluation.urgency,
        must_beat_ns=evaluation.must_beat_ns,
    )


def urgency(job: RunnerJob) -> Urgency:
    """Who waits for it."""
    if isinstance(job, Evaluation):
        return job.urgency
    return Urgency.PEOPLE if isinstance(job, TaskCheck) else Urgency.BASELINES


def order(job: RunnerJob) -> tuple[str, Any]:
    """The function that does it, and what it needs to know."""
    if isinstance(job, Evaluation):
        return EVALUATE_FUNCTION, request_of(job)
    if isinstance(job, TaskCheck):
        check = CheckRequest(
            check_id=str(job.pk), task=job.version.data, device=job.device_id, attempt=job.attempt
        )
        return CHECK_FUNCTION, check
    assert isinstance(job, BaselineMeasurement), f"runners know no {type(job).__name__}"
    measurement = BaselineRequest(
        measurement_id=str(job.pk),
        task=job.version.data,
        direction=Direction(job.direction),
        device=job.device_id,
        attempt=job.attempt,
    )
    return BASELINES_FUNCTION, measurement


def enqueue(job: RunnerJob) -> bool:
    """Queue the current attempt; call it after the commit.

    False if Redis could not be reached: then `reconcile` queues it later.
    """
    try:
        function, request = order(job)
        _enqueue_job(job, function, codec.encode(request))
    except RedisError as error:
        log.warning("%s waits for Redis: %s", job_id(job), error)
        return False
    return True


def _enqueue_job(job: RunnerJob, function: str, request: Any) -> None:
    queue(job.device_id, urgency(job)).enqueue(
        function,
        args=(request,),
        job_id=job_id(job),
        job_timeout=settings.JOB_TIMEOUT_S,
        result_ttl=_RESULT_TTL_S,
        failure_ttl=_FAILURE_TTL_S,
        description=f"{function.rpartition('.')[2]} {job.pk} attempt {job.attempt}",
    )


def enqueue_advance(run_id: object) -> bool:
    """Queue a run's next step, unless one waits that has not begun; call it after the commit.

    False if Redis could not be reached: then `reconcile_runs` queues it later.
    """
    try:
        if connection().set(_mark(run_id), 1, nx=True, ex=_ADVANCE_MARK_S):
            _enqueue(RUNS_QUEUE, ADVANCE_FUNCTION, run_id, timeout_s=_ADVANCE_TIMEOUT_S)
    except RedisError as error:
        log.warning("run %s waits for Redis: %s", run_id, error)
        return False
    return True


def advance_begins(run_id: object) -> None:
    """From now on a new step may be queued: call it before this one reads anything."""
    try:
        connection().delete(_mark(run_id))
    except RedisError as error:
        log.warning("the next step of run %s may come late: %s", run_id, error)


def enqueue_call(call_id: object) -> bool:
    """Queue a call of a language model; a second job of one call does nothing.

    False if Redis could not be reached: then `reconcile_runs` queues it later.
    """
    return _enqueue_beside_runs("call", CALL_FUNCTION, call_id, timeout_s=_CALL_TIMEOUT_S)


def enqueue_delivery(delivery_id: object) -> bool:
    """Queue a try to deliver a message; a second job of one try does nothing.

    False if Redis could not be reached: then `look_after` queues it later.
    """
    return _enqueue_beside_runs(
        "delivery", DELIVER_FUNCTION, delivery_id, timeout_s=_DELIVERY_TIMEOUT_S
    )


def _enqueue_beside_runs(kind: str, function: str, about: object, *, timeout_s: int) -> bool:
    try:
        job = f"{kind}-{about}"
        _enqueue(CALLS_QUEUE, function, about, timeout_s=timeout_s, job=job)
    except RedisError as error:
        log.warning("%s %s waits for Redis: %s", kind, about, error)
        return False
    return True


def waiting_calls() -> set[str]:
    """Ids of the calls whose jobs are in the queue; raises `RedisError` without Redis."""
    jobs = _waiting_in(_queue(CALLS_QUEUE))
    return {job.removeprefix("call-") for job in jobs}


def steer(runner: Runner) -> bool:
    """Tell a runner what an admin wants of it; call it after the commit.

    False if Redis could not be reached: then its next heartbeat brings it about.
    """
    try:
        if runner.wanted == Runner.Wanted.WORK:
            connection().hdel(STEERING, runner.name)
        else:
            connection().hset(STEERING, runner.name, f"by an admin: {runner.wanted_reason}")
    except RedisError as error:
        log.warning("runner %s is not told yet: %s", runner.name, error)
        return False
    return True


def has_worker(name: str) -> bool:
    """Whether a worker listens to that queue; False without Redis."""
    try:
        return Worker.count(queue=_queue(name)) > 0
    except RedisError:
        return False


def _mark(run_id: object) -> str:
    return f"kbench:advance:{run_id}"


def drop(job: RunnerJob, attempt: int) -> None:
    """Take an attempt out of the queue, or stop the work-horse that has begun it."""
    try:
        found = _fetch(job_id(job, attempt))
        if found is None:
            return
        if found.get_status() == JobStatus.STARTED:
            send_stop_job_command(connection(), found.id, serializer=JSONSerializer)
        else:
            found.cancel()
    except (NoSuchJobError, InvalidJobOperation):
        return  # it ended, or its worker is gone, in the meantime
    except RedisError as error:
        log.warning("job %s stays: %s", job_id(job, attempt), error)


def waiting_jobs(device_slug: str) -> set[str]:
    """Ids of the jobs in a device's queues, or just on their way from there to a work-horse.

    Raises `RedisError` without Redis.
    """
    queues = (queue(device_slug, urgency) for urgency in Urgency)
    return set.union(*(_waiting_in(device_queue) for device_queue in queues))


def _waiting_in(device_queue: Queue) -> set[str]:
    on_their_way = IntermediateQueue(device_queue.key, device_queue.connection)
    # in this order: a job that moves between the two reads is seen twice, not missed
    waiting, taken = device_queue.job_ids, on_their_way.get_job_ids()
    return {*waiting, *(job for job in taken if not _is_lost(on_their_way, job))}


def _is_lost(on_their_way: IntermediateQueue, job: str) -> bool:
    """Whether the worker that took a job died before it began; RQ would notice in ten minutes."""
    on_their_way.set_first_seen(job)  # keeps what is there
    seen = on_their_way.get_first_seen(job)
    if seen is None or datetime.now(UTC) - seen < _TAKEN:
        return False
    log.warning("job %s was taken, and never begun", job)
    on_their_way.remove(job)
    on_their_way.connection.delete(on_their_way.get_first_seen_key(job))
    return True


def look(job: RunnerJob) -> JobView:
    """What RQ knows of the current attempt's job; raises `RedisError` without Redis."""
    found, status = _seen(job)
    if status in _BEFORE_ITS_START:
        if found is not None and found.id in waiting_jobs(job.device_id):
            return JobView(JobState.WAITING)
        found, status = _seen(job)  # it may have begun between the two reads
    if found is None or status is None or status in _BEFORE_ITS_START:
        return JobView(JobState.MISSING)
    if status == JobStatus.STARTED:
        return JobView(JobState.STARTED, _aware(found.started_at))
    since = _aware(found.ended_at or found.started_at)
    return JobView(JobState.ENDED, since, _refusal(found) if status == JobStatus.FAILED else "")


def _seen(job: RunnerJob) -> tuple[RqJob | None, JobStatus | None]:
    """The current attempt's job, and its status as it is now."""
    found = _fetch(job_id(job))
    return found, found.get_status() if found is not None else None


def _refusal(job: RqJob) -> str:
    result = job.latest_result()
    words = str(result.exc_string or "") if result is not None else ""
    return words.removeprefix(REFUSED).strip() if words.startswith(REFUSED) else ""


def _aware(moment: datetime | None) -> datetime | None:
    """RQ's times are in UTC, whether they say so or not."""
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _fetch(identity: str) -> RqJob | None:
    try:
        return RqJob.fetch(identity, connection=connection(), serializer=JSONSerializer)
    except NoSuchJobError:
        return None
