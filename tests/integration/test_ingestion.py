"""From a submission through RQ and the event stream to the row and the socket, on a real Redis."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.core.management import call_command
from django.db import connection
from redis import Redis
from rq import Queue, SimpleWorker
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.event import EVENT_STREAM, Event, EventKind
from kbench_web.asgi import application
from runs_app.messaging import queues
from runs_app.messaging.stream import DEAD_LETTERS, GROUP
from runs_app.models import Evaluation, Result, Runner
from runs_app.runners.events import record_event
from runs_app.runners.reconcile import reconcile
from runs_app.submissions.services import cancel
from tests import factories as make
from tests.conftest import RedisServer

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def redis(redis_url: str, settings: Any) -> Iterator[Redis]:
    """The site's Redis: a real one, with sockets over it."""
    settings.REDIS_URL = redis_url
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [redis_url]},
        }
    }
    with Redis.from_url(redis_url) as client:
        yield client


def post(redis: Redis, *events: Event) -> None:
    """Send events as a runner does."""
    for event in events:
        redis.xadd(EVENT_STREAM, {"event": json.dumps(codec.encode(event))})


def whole_life(evaluation: Evaluation) -> list[Event]:
    """All events of an evaluation that goes well."""
    result = {"result": codec.encode(make.make_result(evaluation))}
    stage = {"stage": "build", "state": "done", "elapsed_s": 1.0, "detail": "0.4 s"}
    return [
        make.make_heartbeat(),
        make.make_event(evaluation, seq=1, payload={"runner": "host-1", "at": 0.0}),
        make.make_event(evaluation, seq=2, kind=EventKind.STAGE, payload=stage),
        make.make_event(evaluation, seq=3, kind=EventKind.ALIVE, payload={"runner": "host-1"}),
        make.make_event(evaluation, seq=4, kind=EventKind.FINISHED, payload=result),
    ]


def drain() -> None:
    """Record everything that waits in the stream."""
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        call_command("ingest_events", "--drain")
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def wait_for(condition: Callable[[], bool], timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def verdict_of(evaluation: Evaluation) -> str:
    return Evaluation.objects.values_list("verdict", flat=True).get(pk=evaluation.pk)


def test_a_submission_reaches_the_runner_as_json(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    job = Job.fetch(queues.job_id(evaluation), connection=redis, serializer=JSONSerializer)
    assert job.func_name == "gpu_runner.daemon.jobs.evaluate"
    assert job.origin == "device-cpu"
    (document,) = job.args
    request = codec.decode(EvaluationRequest, document)
    assert request == queues.request_of(evaluation)
    assert request.task == evaluation.task_version.data
    assert queues.look(evaluation).state is queues.JobState.WAITING


def test_events_become_rows_and_leave_the_stream(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    post(redis, *whole_life(evaluation))
    drain()
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.verdict) == ("FINISHED", "CORRECT")
    assert evaluation.runner == Runner.objects.get(name="host-1")
    assert redis.xlen(EVENT_STREAM) == 0
    assert not redis.exists(DEAD_LETTERS)


def test_events_sent_again_and_out_of_their_life_change_nothing(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    life = whole_life(evaluation)
    post(redis, *life, *life, *reversed(life))
    drain()
    evaluation.refresh_from_db()
    assert evaluation.verdict == "CORRECT"
    assert Result.objects.count() == 1
    kinds = [event.kind for event in evaluation.events.order_by("position")]
    assert kinds == ["queued", "started", "stage", "finished"]


async def test_the_socket_hears_of_it(redis: Redis) -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    path = f"/ws/evaluations/{evaluation.pk}/"
    communicator = WebsocketCommunicator(application, path, headers=headers)
    assert (await communicator.connect())[0]
    events = await sync_to_async(whole_life)(evaluation)
    await sync_to_async(post)(redis, *events)
    for event in events:
        await sync_to_async(record_event)(event=event, now=make.NOW)
    heard = [await communicator.receive_json_from(timeout=60) for _ in range(4)]
    assert [event["kind"] for event in heard] == ["queued", "started", "stage", "finished"]
    assert [event["seq"] for event in heard] == [1, 2, 3, 4]
    assert heard[-1]["payload"]["speedup"] == 1.5
    await communicator.disconnect()


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"event": "{not json"}, "is not JSON"),
        ({"event": "[" * 100_000}, "is not JSON"),
        ({"event": "[]"}, "must be an object"),
        ({"event": '{"kind": "started"}'}, "job_id: is missing"),
        ({"other": "x"}, "is not JSON"),
    ],
)
def test_poison_is_set_aside(redis: Redis, entry: dict[str, str], reason: str) -> None:
    evaluation = make.make_evaluation()
    redis.xadd(EVENT_STREAM, entry)
    post(redis, make.make_event(evaluation, job_id="nobody's"))
    post(redis, *whole_life(evaluation))
    drain()
    assert verdict_of(evaluation) == "CORRECT"
    (_, dead), (_, unknown) = redis.xrange(DEAD_LETTERS)
    assert reason in dead[b"reason"].decode()
    assert "there is no evaluation" in unknown[b"reason"].decode()
    assert redis.xlen(EVENT_STREAM) == 0


def test_what_a_killed_ingester_had_read_is_recorded(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    redis.xgroup_create(EVENT_STREAM, GROUP, id="0", mkstream=True)
    post(redis, *whole_life(evaluation))
    redis.xreadgroup(GROUP, "ingest", {EVENT_STREAM: ">"})  # read, and then killed
    drain()
    assert verdict_of(evaluation) == "CORRECT"
    assert redis.xpending(EVENT_STREAM, GROUP)["pending"] == 0


def test_a_cancelled_job_leaves_the_queue(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    cancel(evaluation=evaluation, user=evaluation.submission.author, now=make.NOW)
    queue = Queue("device-cpu", connection=redis, serializer=JSONSerializer)
    assert queue.job_ids == []


def test_a_forgotten_job_comes_back(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    redis.flushall()
    assert queues.look(evaluation).state is queues.JobState.MISSING
    call_command("reconcile")
    assert queues.look(evaluation).state is queues.JobState.WAITING
    evaluation.refresh_from_db()
    assert evaluation.attempt == 1


def test_a_job_that_begins_while_it_is_looked_for_is_not_missing(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = make.make_evaluation()
    queue = Queue("device-cpu", connection=redis, serializer=JSONSerializer)

    def begins(device_slug: str) -> set[str]:
        """Between the look at its status and the one into the queues."""
        job = Job.fetch(queues.job_id(evaluation), connection=redis, serializer=JSONSerializer)
        queue.remove(job)
        job.set_status(JobStatus.STARTED)
        return waiting_jobs(device_slug)

    waiting_jobs = queues.waiting_jobs
    monkeypatch.setattr(queues, "waiting_jobs", begins)
    assert queues.look(evaluation).state is queues.JobState.STARTED


def test_an_audit_waits_in_a_queue_of_its_own(redis: Redis) -> None:
    Evaluation.objects.filter(pk=make.make_evaluation().pk).update(background=True, mode="audit")
    audit = Evaluation.objects.get()
    redis.flushall()
    call_command("reconcile")
    assert Queue("device-cpu-audits", connection=redis).job_ids == [queues.job_id(audit)]
    assert queues.waiting_jobs("cpu") == {queues.job_id(audit)}
    assert queues.look(audit).state is queues.JobState.WAITING
    call_command("reconcile")
    assert queues.look(audit).state is queues.JobState.WAITING


def test_a_job_that_died_is_retried(redis: Redis) -> None:
    """RQ's own worker runs the job, which fails at once: there is no such function here."""
    evaluation = make.make_evaluation()
    job = Job.fetch(queues.job_id(evaluation), connection=redis, serializer=JSONSerializer)
    job.func_name = "kbench_web.env.nothing_of_that_name"
    job.save()
    queue = Queue("device-cpu", connection=redis, serializer=JSONSerializer)
    SimpleWorker([queue], connection=redis, serializer=JSONSerializer).work(burst=True)
    job_view = queues.look(evaluation)
    assert job_view.state is queues.JobState.ENDED
    assert job_view.since is not None
    assert reconcile(now=job_view.since + timedelta(seconds=59), listening_since=make.NOW) == 0
    assert reconcile(now=job_view.since + timedelta(seconds=61), listening_since=make.NOW) == 1
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == ("QUEUED", 2)
    assert queues.look(evaluation).state is queues.JobState.WAITING


class Ingester:
    """`manage.py ingest_events` as a process, on the test's database."""

    def __init__(self, redis_url: str) -> None:
        name = connection.settings_dict["NAME"]
        url = os.environ.get("DATABASE_URL", "")
        database = f"{url.rsplit('/', 1)[0]}/{name}" if url else f"sqlite:///{name}"
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "ingest_events"],
            cwd=ROOT,
            env={**os.environ, "REDIS_URL": redis_url, "DATABASE_URL": database},
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


def test_the_process_survives_redis_and_its_own_death(
    redis_server: RedisServer, settings: Any
) -> None:
    settings.REDIS_URL = redis_server.url
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    first, second, third = (make.make_evaluation() for _ in range(3))
    ingester = Ingester(redis_server.url)
    try:
        with Redis.from_url(redis_server.url) as redis:
            post(redis, *whole_life(first))
            wait_for(lambda: verdict_of(first) == "CORRECT")
        redis_server.stop()
        time.sleep(1.5)
        redis_server.start()
        with Redis.from_url(redis_server.url) as redis:
            post(redis, *whole_life(second))
            wait_for(lambda: verdict_of(second) == "CORRECT")
            ingester.kill()
            post(redis, *whole_life(third))
        ingester = Ingester(redis_server.url)
        wait_for(lambda: verdict_of(third) == "CORRECT")
        assert ingester.stop() == 0
    finally:
        ingester.kill()
    assert Result.objects.count() == 3
