"""Answers about whole boards that are kept for a while, where there is a cache."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.core.cache import cache
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

T = TypeVar("T")


def kept(
    name: str, find: Callable[[], T], seconds: int, worth: Callable[[T], bool] = lambda _: True
) -> T:
    """What is kept under this name, else what is found: that is kept if it is worth it.

    Without a cache nothing is kept.
    """
    key = f"boards:{name}"
    try:
        known: T | None = cache.get(key)
        if known is None:
            known = find()
            if worth(known):
                cache.set(key, known, timeout=seconds)
    except RedisError as error:
        log.warning("answers about boards are not kept: %s", error)
        return find()
    return known
