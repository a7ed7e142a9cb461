"""What runners are asked to do, and what they are told: the site's side of the runners' Redis.

A device's queues are RQ's, one for each urgency. They hold names of jobs. Runners of other hosts
see none of this: they get orders over HTTPS, or in a folder.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator
from contextlib import suppress
from uuid import UUID

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError, ResponseError
from rq import Queue
from rq.exceptions import InvalidJobOperation, NoSuchJobError
from rq.job import Job as RqJob
from rq.serializers import JSONSerializer

from gpu_runner.data import codec, mailbox
from gpu_runner.data.order import JobName, Order, Word
from gpu_runner.data.queue import Urgency, queue_name
from runs_app.core.messaging.queues import connected
from runs_app.models import JOBS, Runner, RunnerJob, RunnerToken, Status

log = logging.getLogger(__name__)

FUNCTION = "gpu_runner.daemon.jobs.do"
"""RQ wants a name; nobody ever calls it by that."""
_KEPT_S = 24 * 3600
_ANSWER_KEPT_S = 300  # a runner asks again well before


def connection() -> Redis:
    """The runners' Redis, over the site's own login."""
    return connected(settings.RUNNERS_REDIS_URL)


def failure() -> str:
    """Why nothing can be queued now; empty if something can."""
    try:
        connection().ping()
    except RedisError as error:
        return (
            f"the runners' Redis isn't responding ({error}), so nothing was queued or stored. "
            "Start the site with `make up`, or set KBENCH_RUNNERS_REDIS_URL, and try again"
        )
    return ""


def name_of(job: RunnerJob, attempt: int | None = None) -> JobName:
    """The name of one attempt (the current one if left out)."""
    return JobName(job.KIND, str(job.pk), attempt or job.attempt)


def order_of(job: RunnerJob) -> Order:
    """The current attempt, with everything that its runner needs to know."""
    return Order(
        kind=job.KIND,
        job_id=str(job.pk),
        attempt=job.attempt,
        timeout_s=settings.JOB_TIMEOUT_S,
        request=codec.encode(job.request()),
    )


def queue(device_slug: str, urgency: Urgency = Urgency.PEOPLE) -> Queue:
    """One of a device's queues."""
    name = queue_name(device_slug, urgency)
    return Queue(name, connection=connection(), serializer=JSONSerializer)


def enqueue(job: RunnerJob) -> bool:
    """Queue the name of the current attempt, once however often; call it after the commit.

    False if Redis could not be reached: then `reconcile` queues it later.
    """
    name = name_of(job)
    identity = mailbox.rq_id(job.device_id, str(name))
    waiting = queue(job.device_id, job.urgency)
    try:
        connection().lrem(waiting.key, 0, identity)
        waiting.enqueue(
            FUNCTION, job_id=identity, result_ttl=0, failure_ttl=_KEPT_S, description=str(name)
        )
    except RedisError as error:
        log.warning("%s is waiting for Redis: %s", name, error)
        return False
    return True


def drop(job: RunnerJob, attempt: int) -> None:
    """Take an attempt out of its queue, or forget that it was there; call it after the commit."""
    identity = mailbox.rq_id(job.device_id, str(name_of(job, attempt)))
    try:
        RqJob.fetch(identity, connection=connection(), serializer=JSONSerializer).delete()
    except (NoSuchJobError, InvalidJobOperation):
        return
    except RedisError as error:
        log.warning("%s stays in its queue: %s", name_of(job, attempt), error)


def waiting(device_slug: str) -> set[str]:
    """Names of the jobs in a device's queues; raises `RedisError` without Redis."""
    queues = (queue(device_slug, each) for each in Urgency)
    return {mailbox.job_of(identity) for each in queues for identity in each.job_ids}


def answer(token: RunnerToken, ticket: str, order: Order | None) -> None:
    """Answer an ask that came through Redis; raises `RedisError` without it.

    A Redis that is full takes no answer. The runner asks again, with the same ticket.
    """
    key = mailbox.answer_key(token.mailbox, ticket)
    try:
        with connection().pipeline(transaction=True) as pipe:
            pipe.rpush(key, json.dumps(codec.encode(order), separators=(",", ":"), allow_nan=False))
            pipe.expire(key, _ANSWER_KEPT_S)
            pipe.execute()
    except ResponseError as error:
        log.warning("could not answer runner %s: %s", token, error)


def word_to(runner: Runner) -> Word:
    """What the site wants of a runner now, and which of its jobs are no longer its own."""
    hold = ""
    if runner.token.revoked_at is not None:
        hold = f"the token {runner.token.name} was revoked"
    elif runner.wanted != Runner.Wanted.WORK:
        hold = f"by an admin: {runner.wanted_reason}"
    said = set(runner.current)
    held: set[str] = set()
    for model in JOBS.values():
        # One that is over by its own report may still look after its device.
        rows = model._default_manager.filter(runner=runner).exclude(status=Status.CANCELLED)
        known = rows.filter(pk__in=list(_ids(said, model.KIND))).only("attempt")
        held |= {str(name_of(job)) for job in known}
    return Word(hold=hold, dropped=tuple(sorted(said - held)))


def _ids(names: Collection[str], kind: str) -> Iterator[UUID]:
    """Ids of the jobs of that kind among names that a runner has sent, right or wrong."""
    for text in names:
        with suppress(ValueError):  # of which `DataError` is one
            name = JobName.read(text)
            if name.kind == kind:
                yield UUID(name.job_id)


def tell(runner: Runner) -> bool:
    """Tell a runner what the site wants of it; call it after the commit.

    False if Redis could not be reached: then its next heartbeat brings it about.
    """
    key = mailbox.word_key(runner.token.mailbox, runner.own_name)
    try:
        word = json.dumps(codec.encode(word_to(runner)))
        connection().set(key, word, ex=_KEPT_S)
    except RedisError as error:
        log.warning("could not notify runner %s yet: %s", runner.name, error)
        return False
    return True
