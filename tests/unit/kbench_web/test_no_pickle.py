"""No process of the site reads a pickle; a cache that is away or unreadable is an empty one."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.cache import cache
from django.test import Client
from rq import Queue
from rq.serializers import DefaultSerializer, JSONSerializer

from kbench_web.patient_cache import PatientRedisCache
from runs_app import jobs as site_jobs
from runs_app.core.messaging import queues
from tests.unit.kbench_web.world import make_world, routes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

BOARDS = [f"/leaderboard/?device=cpu&by={by}" for by in ("submission", "agent", "model", "matrix")]


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("the site reads a pickle")


class Refused(pickle.Unpickler):
    """In place of the class that reads pickles."""

    __init__ = refuse


@pytest.fixture
def no_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads a pickle fails."""
    for name in ("load", "loads"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(pickle, "Unpickler", Refused)
    monkeypatch.setattr(DefaultSerializer, "loads", refuse)  # RQ's, taken before


@pytest.fixture
def real_cache(redis_url: str, settings: Any) -> redis.Redis:
    """The site's cache as it is in production, in which everything is kept."""
    backend = "kbench_web.patient_cache.PatientRedisCache"
    settings.CACHES = {
        "default": {"BACKEND": backend, "LOCATION": redis_url, "KEY_PREFIX": "kbench"}
    }
    settings.API_REQUESTS_PER_MINUTE = 10**6
    return redis.Redis.from_url(redis_url)


@pytest.mark.usefixtures("no_pickle")
def test_no_page_reads_a_pickle_whether_the_cache_is_cold_or_warm(real_cache: redis.Redis) -> None:
    world = make_world()
    addresses = [*map(world.address, routes()), *BOARDS]
    cache.clear()
    for viewer in (world.alice, world.admin):  # the first finds nothing there
        client = Client(raise_request_exception=True)
        client.force_login(viewer)
        assert [each for each in addresses if client.get(each).status_code >= 500] == []
        kept = {key.split(b":")[2] for key in real_cache.keys("kbench:*")}
        assert {b"estimates", b"rate"} <= kept


class Planted:
    """A pickle that makes a file where it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.file,))


def test_what_somebody_else_puts_into_the_cache_counts_as_missing(
    real_cache: redis.Redis, tmp_path: Path
) -> None:
    """Every page still answers, with what it finds by itself."""
    executed = tmp_path / "executed"
    world = make_world()
    pages = ["/", *BOARDS, "/submit/", "/queue/", f"/agents/{world.bob.agents.get().pk}/"]
    before = {page: Client().get(page).content for page in pages}
    a_pickle = pickle.dumps(Planted(executed))
    for garbage in (a_pickle, b"\x80", b"[" * 10**6, b'{"best": 1}', b"[[[]]]"):
        keys = [key for key in real_cache.keys("kbench:*") if b":rate:" not in key]
        for key in [*keys, b"kbench:1:estimates:cpu"]:
            real_cache.set(key, garbage)
        for page in pages:
            answer = Client().get(page)
            assert answer.status_code == 200, page
            assert b"robot" in answer.content or b"robot" not in before[page], page
    assert not executed.exists()


def test_a_value_that_is_no_json_is_refused_when_it_is_stored(real_cache: redis.Redis) -> None:
    with pytest.raises(TypeError):
        cache.set("name", object())
    assert cache.get("name", "missing") == "missing"


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, redis_url: str) -> redis.Redis:
    """A Redis in which the worker's functions note that they were called."""
    connection = redis.Redis.from_url(redis_url)
    for name in site_jobs.ALLOWED:
        monkeypatch.setitem(
            site_jobs.ALLOWED, name, lambda about: connection.rpush("called", about)
        )
    return connection


def test_no_worker_reads_a_pickle(called: redis.Redis, tmp_path: Path) -> None:
    """Neither in a job that waits nor in one that was given up."""
    executed = tmp_path / "executed"
    queue = Queue("runs", connection=called, serializer=JSONSerializer)
    given_up = queue.enqueue(queues.ADVANCE_FUNCTION, "6")
    called.hset(given_up.key, "meta", pickle.dumps(Planted(executed)))
    called.lrem(queue.key, 0, given_up.id)
    called.zadd(queue.started_job_registry.key, {f"{given_up.id}:execution": 1})
    queue.enqueue(queues.ADVANCE_FUNCTION, "7")
    loose = Queue("runs", connection=called)  # as a pool hands it over
    loose.enqueue(queues.ADVANCE_FUNCTION, Planted(executed))
    site_jobs.SiteWorker([loose], connection=called).work(burst=True)
    assert called.lrange("called", 0, -1) == [b"7"]
    assert given_up.is_failed
    assert not executed.exists()


USES: list[tuple[Callable[[PatientRedisCache], object], object]] = [
    (lambda cache: cache.get("a", "none"), "none"),
    (lambda cache: cache.get_many(["a", "b"]), {}),
    (lambda cache: cache.set("a", 1), None),
    (lambda cache: cache.set_many({"a": 1}), []),
    (lambda cache: cache.add("a", 1), True),
    (lambda cache: cache.delete("a"), False),
]


@pytest.mark.parametrize(("use", "answer"), USES)
def test_nothing_fails_without_redis(
    use: Callable[[PatientRedisCache], object], answer: object
) -> None:
    assert use(PatientRedisCache("redis://127.0.0.1:1", {})) == answer


def test_several_values_come_back_without_those_that_nobody_can_read(redis_url: str) -> None:
    cache = PatientRedisCache(redis_url, {})
    cache.set_many({"a": 1, "b": [2]})
    assert cache.get_many(iter(["a", "b", "c"])) == {"a": 1, "b": [2]}
    redis.Redis.from_url(redis_url).set(cache.make_key("b"), b"\x80not JSON")
    assert cache.get_many(["a", "b"]) == {"a": 1}
