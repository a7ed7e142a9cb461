"""Small answers about whole boards, kept for half a minute for the pages that everybody opens."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.core.cache import cache
from redis.exceptions import RedisError

from leaderboard_app.boards import selectors
from leaderboard_app.boards.ranking import Entry, Ranked
from runs_app.models import Device

log = logging.getLogger(__name__)

KEPT_S = 30
"""How old an answer may be; nothing drops it earlier."""

T = TypeVar("T")


def leaders() -> list[tuple[Device, list[Ranked[Entry]]]]:
    """The first rows of the board of each device that has any."""
    return _kept("leaders", _leaders)


def solved() -> dict[str, selectors.Solved]:
    """By task: how many agents solved it, and the best speedup with its device."""
    return _kept("solved", selectors.solved_tasks)


def _leaders() -> list[tuple[Device, list[Ranked[Entry]]]]:
    found = [(device, selectors.top(device.slug)) for device in selectors.devices_with_results()]
    return [(device, rows) for device, rows in found if rows]


def _kept(name: str, find: Callable[[], T]) -> T:
    """What is kept under this name, else what is found; without a cache nothing is kept."""
    key = f"boards:{name}"
    try:
        known: T | None = cache.get(key)
        if known is None:
            known = find()
            cache.set(key, known, timeout=KEPT_S)
    except RedisError as error:
        log.warning("answers about boards are not kept: %s", error)
        return find()
    return known
