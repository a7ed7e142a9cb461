"""Small answers about whole boards, kept for half a minute for the pages that everybody opens."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from django.core.cache import cache
from redis.exceptions import RedisError

from leaderboard_app.boards import selectors
from leaderboard_app.boards.ranking import Entry, Problem, Ranked
from leaderboard_app.boards.records import Record, record_of_the_day
from runs_app.models import Device

log = logging.getLogger(__name__)

KEPT_S = 30
"""How old an answer may be; nothing drops it earlier."""
_READ = 25
_SHOWN = 6
"""Of so many of a device's best results, the leaders of so many boards are shown."""

T = TypeVar("T")


def leaders() -> list[tuple[Device, list[Entry]]]:
    """By device: the leaders of those boards of one task on which they are furthest ahead."""
    return _kept("leaders", _leaders)


def record(now: datetime) -> Record | None:
    """The record of the day."""
    return _kept("record", lambda: (record_of_the_day(now),))[0]


def solved() -> dict[str, selectors.Solved]:
    """By task: how many agents solved it, and the best speedup with its device."""
    return _kept("solved", selectors.solved_tasks)


def _leaders() -> list[tuple[Device, list[Entry]]]:
    devices = selectors.devices_with_results()
    found = [
        (device, _first_of_each(selectors.top(device.slug, limit=_READ))) for device in devices
    ]
    return [(device, rows) for device, rows in found if rows]


def _first_of_each(rows: list[Ranked[Entry]]) -> list[Entry]:
    """The best entry of each problem, in order; a speedup leads a board as its time does."""
    first: dict[Problem, Entry] = {}
    for ranked in rows:
        first.setdefault(ranked.row.problem, ranked.row)
    return list(first.values())[:_SHOWN]


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
