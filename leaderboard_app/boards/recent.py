"""Small answers about whole boards, kept for half a minute for the pages that everybody opens."""

from __future__ import annotations

from datetime import datetime

from leaderboard_app.boards import filtering, selectors
from leaderboard_app.boards.best import furthest_ahead
from leaderboard_app.boards.kept import kept
from leaderboard_app.boards.query import Query
from leaderboard_app.boards.ranking import Entry
from leaderboard_app.boards.records import Record, record_of_the_day
from runs_app.models import Device

KEPT_S = 30
"""How old an answer may be; nothing drops it earlier."""
_SHOWN = 6
"""Leaders that are shown of each device."""


def leaders() -> list[tuple[Device, list[Entry]]]:
    """By device: the leaders of those boards of one task on which they are furthest ahead."""
    return kept("leaders", _leaders, KEPT_S)


def record(now: datetime) -> Record | None:
    """The record of the day."""
    return kept("record", lambda: (record_of_the_day(now),), KEPT_S)[0]


def solved() -> dict[str, selectors.Solved]:
    """By task: how many agents solved it, and the best speedup with its device."""
    return kept("solved", selectors.solved_tasks, KEPT_S)


def _leaders() -> list[tuple[Device, list[Entry]]]:
    found = [
        (device, furthest_ahead(filtering.eligible(Query(device=device.slug)), _SHOWN))
        for device in selectors.devices_with_results()
    ]
    return [(device, rows) for device, rows in found if rows]
