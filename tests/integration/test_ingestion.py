"""From a submission through RQ and a runner's stream to the row and the socket, on a real Redis."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from redis import Redis
from rq import Queue
from rq.serializers import JSONSerializer

from gpu_runner.daemon.sources.redis_source import RedisSource
from gpu_runner.data import codec, mailbox
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.queue import Urgency
from kbench_web.asgi import application
from runs_app.core.messaging import orders
from runs_app.core.messaging.stream import DEAD_LETTERS, GROUP
from runs_app.core.runners.events import record_event
from runs_app.core.runners.reconcile import reconcile
from runs_app.core.runners.tokens import grant_login, revoke
from runs_app.models import Evaluation, Result, Runner
from runs_app.submitting.services import cancel
from tests import evidence
from tests import factories as make
from tests.conftest import RedisServer

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[2]
LATENCY_NS = 2000.0  # 1.5 times as fast as the best baseline


@pytest.fixture
def redis(redis_url: str, settings: Any) -> Iterator[Redis]:
    """The site's Redis, and that of its runners: a real one, with sockets over it."""
    settings.REDIS_URL = settings.RUNNERS_REDIS_URL = redis_url
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [redis_url]},
        }
    }
    with Redis.from_url(redis_url) as client:
        yield client


def stream() -> str:
    return mailbox.events_key(make.make_runner_token().mailbox)


def post(redis: Redis, *events: Event) -> None:
    """Send events as a runner does."""
    for event in events:
        redis.xadd(stream(), {mailbox.EVENT: json.dumps(codec.encode(event))})


def whole_life(evaluation: Evaluation) -> list[Event]:
    """All events of an evaluation that is handed over now and goes well."""
    make.hand_over(evaluation, "host-1", now=timezone.now())
    right = evidence.result(evaluation.request(), LATENCY_NS)
    result = {"result": codec.encode(right)}
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


def test_a_submission_reaches_the_runner_that_asks_for_it(redis: Redis) -> None:
    evaluation, runner = make.make_evaluation(), make.make_runner(name="host-1")
    token = runner.token
    token.devices.add("cpu")
    assert orders.waiting("cpu") == {f"evaluation-{evaluation.pk}-1"}
    source = RedisSource(grant_login(token))
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(source.take, make.make_ask(runner))
        wait_for(lambda: redis.xlen(stream()) == 1)
        drain()
        order = taken.result(30)
    assert order is not None
    assert (order.job_id, order.attempt) == (str(evaluation.pk), 1)
    request = codec.decode(EvaluationRequest, order.request)
    assert request == evaluation.request()
    assert request.task == evaluation.task_version.data
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.runner) == ("RUNNING", runner)
    assert orders.waiting("cpu") == set()
    for event in whole_life(evaluation):
        source.send(event)
    drain()
    assert verdict_of(evaluation) == "CORRECT"
    assert redis.xlen(stream()) == 0
    assert not redis.exists(DEAD_LETTERS)


def test_a_job_in_the_queue_says_nothing_of_what_is_in_it(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    told = b" ".join(value for key in redis.keys("rq:job:*") for value in redis.hvals(key))
    assert f"evaluation-{evaluation.pk}-1".encode() in told
    for secret in (make.HIDDEN_WORKLOAD, "scale", "float*"):
        assert secret.encode() not in told


def test_an_ask_that_cannot_be_read_is_answered_with_nothing(redis: Redis) -> None:
    runner = make.make_runner(name="host-1")
    evaluation = make.make_evaluation()
    key = mailbox.answer_key(runner.token.mailbox, "0" * 32)
    ask = codec.encode(make.make_ask(runner, ticket="0" * 32, job="evaluation-x-1"))
    for entry in ("{", json.dumps(ask), json.dumps({**ask, "ticket": "x"})):
        redis.xadd(stream(), {mailbox.ASK: entry})
    drain()
    assert redis.lrange(key, 0, -1) == [b"null"]  # that of the one whose ticket could be read
    assert redis.xlen(DEAD_LETTERS) == 3
    evaluation.refresh_from_db()
    assert evaluation.status == "QUEUED"


def test_nobody_speaks_in_the_stream_of_another(redis: Redis) -> None:
    """An event counts as that of the token in whose stream it stands, whatever it says."""
    evaluation = make.make_evaluation()
    other = make.make_runner_token(name="other")
    for event in whole_life(evaluation):
        entry: Any = {mailbox.EVENT: json.dumps(codec.encode(event))}
        redis.xadd(mailbox.events_key(other.mailbox), entry)
    drain()
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == ("RUNNING", 1)
    names = Runner.objects.filter(token=other).values_list("name", flat=True)
    assert list(names) == ["other.host-1"]
    reasons = [fields[b"reason"].decode() for _, fields in redis.xrange(DEAD_LETTERS)]
    assert all(f"isn't working on evaluation-{evaluation.pk}-1" in reason for reason in reasons)
    assert [fields[b"token"] for _, fields in redis.xrange(DEAD_LETTERS)] == [b"other"] * 4


def test_what_a_revoked_token_had_said_is_not_heard(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    post(redis, *whole_life(evaluation))
    token = make.make_runner_token()
    revoke(token=token, reason="it lies", user=make.make_admin(), now=timezone.now())
    drain()
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == ("QUEUED", 2)


async def test_the_socket_hears_of_it(redis: Redis) -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    path = f"/ws/evaluations/{evaluation.pk}/"
    communicator = WebsocketCommunicator(application, path, headers=headers)
    assert (await communicator.connect())[0]
    events = await sync_to_async(whole_life)(evaluation)
    await sync_to_async(post)(redis, *events)
    sender = await sync_to_async(make.make_sender)()
    for event in events:
        await sync_to_async(record_event)(event=event, sender=sender, now=timezone.now())
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
    redis.xadd(stream(), entry)
    post(redis, make.make_event(evaluation, job_id=str(uuid4())))
    post(redis, *whole_life(evaluation))
    drain()
    assert verdict_of(evaluation) == "CORRECT"
    (_, dead), (_, unknown) = redis.xrange(DEAD_LETTERS)
    assert reason in dead[b"reason"].decode()
    assert "there is no evaluation" in unknown[b"reason"].decode()
    assert redis.xlen(stream()) == 0


def test_what_a_killed_ingester_had_read_is_recorded(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    redis.xgroup_create(stream(), GROUP, id="0", mkstream=True)
    post(redis, *whole_life(evaluation))
    redis.xreadgroup(GROUP, "ingest", {stream(): ">"})  # read, and then killed
    drain()
    assert verdict_of(evaluation) == "CORRECT"
    assert redis.xpending(stream(), GROUP)["pending"] == 0


def test_a_cancelled_job_leaves_the_queue(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    cancel(evaluation=evaluation, user=evaluation.submission.author, now=make.NOW)
    queue = Queue("device-cpu", connection=redis, serializer=JSONSerializer)
    assert queue.job_ids == []


def test_a_forgotten_job_comes_back(redis: Redis) -> None:
    evaluation = make.make_evaluation()
    redis.flushall()
    assert orders.waiting("cpu") == set()
    reconcile(now=timezone.now(), listening_since=make.later(-3600))
    assert orders.waiting("cpu") == {f"evaluation-{evaluation.pk}-1"}
    evaluation.refresh_from_db()
    assert evaluation.attempt == 1


def test_a_name_that_was_taken_and_never_asked_for_comes_back(redis: Redis) -> None:
    """Its runner died in between."""
    evaluation = make.make_evaluation()
    redis.blpop(["rq:queue:device-cpu"], 1)
    reconcile(now=timezone.now(), listening_since=make.later(-3600))
    assert orders.waiting("cpu") == {f"evaluation-{evaluation.pk}-1"}


def test_an_audit_waits_in_a_queue_of_its_own(redis: Redis) -> None:
    rows = Evaluation.objects.filter(pk=make.make_evaluation().pk)
    rows.update(queue_place=Urgency.AUDITS.place, mode="audit")
    audit = Evaluation.objects.get()
    redis.flushall()
    name = f"evaluation-{audit.pk}-1"
    for _ in range(2):
        reconcile(now=timezone.now(), listening_since=make.later(-3600))
        assert Queue("device-cpu-audits", connection=redis).job_ids == [mailbox.rq_id("cpu", name)]
        assert orders.waiting("cpu") == {name}


class Ingester:
    """`manage.py ingest_events` as a process, on the test's database."""

    def __init__(self, redis_url: str) -> None:
        name = connection.settings_dict["NAME"]
        url = os.environ.get("DATABASE_URL", "")
        database = f"{url.rsplit('/', 1)[0]}/{name}" if url else f"sqlite:///{name}"
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "ingest_events"],
            cwd=ROOT,
            env={
                **os.environ,
                "REDIS_URL": redis_url,
                "KBENCH_RUNNERS_REDIS_URL": redis_url,
                "DATABASE_URL": database,
            },
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
    settings.REDIS_URL = settings.RUNNERS_REDIS_URL = redis_server.url
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
