"""The cache in Redis; while Redis is away it is empty, and no page fails for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

log = logging.getLogger(__name__)


class PatientRedisCache(RedisCache):
    """Treats what Redis cannot answer as missing, and what it cannot store as stored.

    `incr` raises `RedisError` still: who counts has to know that nothing is counted.
    """

    def add(self, *arguments: Any, **options: Any) -> bool:
        """Whether the key was new; true where nobody can say."""
        return bool(_or(True, super().add, *arguments, **options))

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """The value, or `default`."""
        return _or(default, super().get, key, default, version)

    def set(self, *arguments: Any, **options: Any) -> None:
        """Store a value."""
        _or(None, super().set, *arguments, **options)

    def delete(self, *arguments: Any, **options: Any) -> bool:
        """Whether there was such a value."""
        return bool(_or(False, super().delete, *arguments, **options))


def _or(otherwise: Any, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except RedisError as error:
        log.warning("the cache is away: %s", error)
        return otherwise
