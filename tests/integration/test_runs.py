"""Runs with several workers at once, and with RQ, sockets and a language model's endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from redis import Redis
from rq import Queue, SimpleWorker
from rq.serializers import JSONSerializer

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from kbench_web.asgi import application
from runs_app.core.messaging import queues
from runs_app.jobs import SiteJob
from runs_app.models import Evaluation, LanguageModel, Run
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.services.advance import advance_run
from runs_app.optimiser.services.calls import answer_call
from runs_app.optimiser.services.control import pause_run
from runs_app.optimiser.services.request import read_run_request
from runs_app.optimiser.services.start import start_run as start_a_run
from tests import factories as make
from tests.integration.test_contention import at_once
from tests.scripted_endpoint import Answer, ScriptedEndpoint
from tests.unit.runs_app.optimiser.conftest import INFO, MODEL

pytestmark = pytest.mark.django_db(transaction=True)

LOCAL = [(b"host", b"localhost"), (b"origin", b"http://localhost")]


@pytest.fixture
def redis(redis_url: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Redis]:
    """The site's Redis: a real one, with sockets over it."""
    settings.REDIS_URL = redis_url
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [redis_url]},
        }
    }
    monkeypatch.setitem(STRATEGIES, "plain", INFO)
    with Redis.from_url(redis_url) as client:
        yield client


def start_run(base_url: str = "http://127.0.0.1:9/v1", **overrides: Any) -> Run:
    make.make_cpu()
    version = make.make_task_version()
    LanguageModel.objects.create(
        name=MODEL, base_url=base_url, price_in_usd=0.0, price_out_usd=2.0, created_at=make.NOW
    )
    document: dict[str, Any] = {
        "task": version.task.slug,
        "device": "cpu",
        "strategy": "plain",
        "models": [MODEL],
        "budget": {"evaluations": 50},
        "ranks_best": False,  # see `test_run_kills`
        **overrides,
    }
    request = read_run_request(document)
    return start_a_run(user=make.make_user(), request=request, now=make.NOW)


def advance(run: Run) -> int:
    return advance_run(run_id=run.pk, now=make.later(1))


def measure(run: Run) -> int:
    """End every candidate that waits, one nanosecond faster each."""
    waiting = list(
        Evaluation.objects.filter(submission__run=run, status="QUEUED").order_by(
            "submission__candidate__number"
        )
    )
    for row in waiting:
        latency_ns = 1000.0 - row.submission.candidate.number
        result = make.make_result(row, latency_ns=latency_ns)
        make.start(row)
        make.send(row, EventKind.FINISHED, {"result": codec.encode(result)}, seq=2)
    return len(waiting)


def work(redis: Redis) -> None:
    """Do every job of runs and calls that waits, and those that follow."""
    names = (queues.RUNS_QUEUE, queues.CALLS_QUEUE)
    waiting = [Queue(name, connection=redis, serializer=JSONSerializer) for name in names]
    SimpleWorker(waiting, connection=redis, serializer=JSONSerializer, job_class=SiteJob).work(
        burst=True
    )


def test_workers_that_advance_one_run_at_once_make_each_fact_once(redis: Redis) -> None:
    run = start_run()
    counts = at_once(*[lambda: advance(run)] * 4)
    assert sorted(counts) == [0, 0, 0, 2], counts
    measure(run)
    counts = at_once(*[lambda: advance(run)] * 4)
    assert sorted(counts) == [0, 0, 0, 4], counts
    run.refresh_from_db()
    seqs = list(run.events.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, run.events_stored + 1))
    assert list(run.calls.order_by("number").values_list("number", flat=True)) == [1, 2, 3]


def test_workers_that_want_one_call_send_it_once(redis: Redis) -> None:
    with ScriptedEndpoint([Answer("a kernel", delay_s=0.5)]) as endpoint:
        run = start_run(endpoint.base_url, parameters={"asks": 1})
        advance(run)
        measure(run)
        advance(run)
        call = run.calls.get()
        answers = at_once(*[lambda: answer_call(call_id=call.pk)] * 4)
        assert sorted(answers) == [False, False, False, True], answers
        assert len(endpoint.asked) == 1


def test_a_pause_and_a_call_do_not_cross(redis: Redis) -> None:
    with ScriptedEndpoint([Answer("a kernel")]) as endpoint:
        run = start_run(endpoint.base_url, parameters={"asks": 4})
        advance(run)
        measure(run)
        advance(run)
        sends = [lambda call_id=call.pk: answer_call(call_id=call_id) for call in run.calls.all()]
        pause = lambda: pause_run(run=run, user=run.user, now=make.NOW)  # noqa: E731
        sent = at_once(*sends[:2], pause, *sends[2:])
        assert not [answer for answer in sent if isinstance(answer, Exception)], sent
        assert len(endpoint.asked) == [*sent[:2], *sent[3:]].count(True)
        waiting = run.calls.filter(status="WAITING").count()
        assert waiting + len(endpoint.asked) == 4


def test_many_triggers_make_one_step(redis: Redis) -> None:
    run = start_run()
    runs = Queue(queues.RUNS_QUEUE, connection=redis, serializer=JSONSerializer)
    for _ in range(5):
        queues.enqueue_advance(run.pk)
    assert len(runs.job_ids) == 1
    queues.advance_begins(run.pk)
    queues.enqueue_advance(run.pk)
    assert len(runs.job_ids) == 2


def test_the_sites_workers_run_nothing_else(redis: Redis) -> None:
    runs = Queue(queues.RUNS_QUEUE, connection=redis, serializer=JSONSerializer)
    job = runs.enqueue("os.system", args=("true",))
    work(redis)
    job.refresh()
    assert job.get_status() == "failed"
    assert "is not a function that this worker runs" in str(job.latest_result().exc_string)


async def test_a_socket_replays_and_then_follows(redis: Redis) -> None:
    run = await sync_to_async(start_run)()
    await sync_to_async(advance)(run)
    path = f"/ws/runs/{run.pk}/?since=1"
    communicator = WebsocketCommunicator(application, path, headers=LOCAL)
    assert (await communicator.connect())[0]
    first = [await communicator.receive_json_from(timeout=60) for _ in range(2)]
    assert [(event["seq"], event["kind"]) for event in first] == [(2, "drafted"), (3, "measuring")]
    assert first[1]["run"]["status"] == "RUNNING"
    await sync_to_async(measure)(run)
    await sync_to_async(advance)(run)
    heard = [await communicator.receive_json_from(timeout=60) for _ in range(4)]
    assert [event["seq"] for event in heard] == [4, 5, 6, 7]
    assert [event["kind"] for event in heard] == ["measured", "asked", "asked", "asked"]
    assert heard[0]["payload"]["latency_ns"] == 999.0
    assert heard[0]["run"]["evaluations"] == 1
    await communicator.disconnect()
