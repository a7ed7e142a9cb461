"""Small answers about whole boards, kept for half a minute for the pages that everybody opens."""

from __future__ import annotations

from datetime import datetime

from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import top
from leaderboard_app.boards.kept import kept
from leaderboard_app.boards.ranking import Entry, Problem, Ranked
from leaderboard_app.boards.records import Record, record_of_the_day
from runs_app.models import Device

KEPT_S = 30
"""How old an answer may be; nothing drops it earlier."""
_READ = 25
_SHOWN = 6
"""Of so many of a device's best results, the leaders of so many boards are shown."""


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
    devices = selectors.devices_with_results()
    found = [(device, _first_of_each(top(device.slug, limit=_READ))) for device in devices]
    return [(device, rows) for device, rows in found if rows]


def _first_of_each(rows: list[Ranked[Entry]]) -> list[Entry]:
    """The best entry of each problem, in order; a speedup leads a board as its time does."""
    first: dict[Problem, Entry] = {}
    for ranked in rows:
        first.setdefault(ranked.row.problem, ranked.row)
    return list(first.values())[:_SHOWN]
