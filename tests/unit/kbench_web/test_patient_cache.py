"""While Redis is away, or holds what nobody can read, the cache is empty and no page fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from kbench_web.patient_cache import PatientRedisCache

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
