"""The cache in Redis, as JSON; while Redis is away it is empty, and no page fails for it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

log = logging.getLogger(__name__)


class JsonSerializer:
    """Values as JSON: Django's own serializer would run code that somebody else put into Redis."""

    def dumps(self, value: object) -> str:
        """The stored text; raises `TypeError` for what isn't plain JSON."""
        return json.dumps(value)

    def loads(self, text: bytes) -> object:
        """The value, or None, which is never stored, for anything but JSON."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            log.warning("ignored a value in the cache that isn't JSON: %s", error)
            return None


class PatientRedisCache(RedisCache):
    """Treats what Redis can't answer as missing, and what it can't store as stored.

    `incr` still raises `RedisError`: a counter has to know that nothing is counted.
    """

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        """Connect to the Redis at this address when it is first needed."""
        options = {"serializer": JsonSerializer} | params.get("OPTIONS", {})
        super().__init__(server, {**params, "OPTIONS": options})

    def add(self, *arguments: object, **options: object) -> bool:
        """Whether the key was new; true where nobody can say."""
        return bool(_or(True, super().add, *arguments, **options))

    def get(self, key: object, default: object = None, version: int | None = None) -> object:
        """The value, or `default` if there is none that can be read."""
        found = _or(None, super().get, key, None, version)
        return default if found is None else found

    def get_many(self, keys: Iterable[str], version: int | None = None) -> dict[str, Any]:
        """By key, the values that can be read."""
        found: dict[str, Any] = _or({}, super().get_many, list(keys), version)
        return {key: value for key, value in found.items() if value is not None}

    def set(self, *arguments: object, **options: object) -> None:
        """Store a value."""
        _or(None, super().set, *arguments, **options)

    def set_many(self, *arguments: object, **options: object) -> list[str]:
        """Store several values; no key is ever told as one that wasn't."""
        _or([], super().set_many, *arguments, **options)
        return []

    def delete(self, *arguments: object, **options: object) -> bool:
        """Whether there was such a value."""
        return bool(_or(False, super().delete, *arguments, **options))


def _or(otherwise: Any, function: Callable[..., Any], *arguments: object, **options: object) -> Any:
    try:
        return function(*arguments, **options)
    except RedisError as error:
        log.warning("the cache is unavailable: %s", error)
        return otherwise
