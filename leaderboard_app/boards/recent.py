"""Small answers about whole boards, kept for the pages that everybody opens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from leaderboard_app.boards import filtering, selectors
from leaderboard_app.boards.best import entries_of
from leaderboard_app.boards.heads import leading
from leaderboard_app.boards.kept import kept
from leaderboard_app.boards.query import Query
from leaderboard_app.boards.ranking import Entry
from leaderboard_app.boards.records import Record, record_of_the_day
from runs_app.models import Device

_SHOWN = 6
"""Leaders that are shown of each device."""


def leaders() -> list[tuple[Device, list[Entry]]]:
    """By device: the leaders of those boards of one task on which they are furthest ahead."""
    return kept("leaders", _leaders)


def record(now: datetime) -> Record | None:
    """The record of the day."""
    return kept("record", lambda: (record_of_the_day(now),))[0]


def solved() -> dict[str, selectors.Solved]:
    """By task: how many agents solved it, and the best speedup with its device."""
    return kept("solved", selectors.solved_tasks)


def _leaders() -> list[tuple[Device, list[Entry]]]:
    tasks = selectors.board_tasks()
    found = [
        (device, _furthest_ahead(device, tasks)) for device in selectors.devices_with_results()
    ]
    return [(device, rows) for device, rows in found if rows]


def _furthest_ahead(device: Device, tasks: Sequence[selectors.BoardTask]) -> list[Entry]:
    """Of the leaders of problems, who lead by their time, those with the largest speedups."""
    query = Query(device=device.slug)
    lead = leading(filtering.eligible(query), filtering.problems_of(query, tasks))
    return entries_of(lead.exclude(speedup_best=None).order_by("-speedup_best", "pk")[:_SHOWN])
