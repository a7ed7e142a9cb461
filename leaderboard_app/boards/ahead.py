"""Boards that everybody opens are made before somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from time import monotonic

from django.utils import timezone

from leaderboard_app.boards import recent
from leaderboard_app.boards.board import board
from leaderboard_app.boards.kept import made_again
from leaderboard_app.boards.query import By, Query, default_sort
from leaderboard_app.boards.selectors import board_tasks, latest_results
from runs_app.work import withdrawn

QUIET_S = 200.0
"""All are made so often: wrong results and money change boards, too. Kept for longer than that."""
SHARE = 0.05
"""Share of a core that making the boards of new results may take, where that is not too seldom."""
LEAST_S = 5.0
"""So long at least lies between two times."""


class Ahead:
    """Remembers what it has made boards of, and makes those again that may have changed."""

    def __init__(self) -> None:
        """Nothing is made yet."""
        self._made_at = self._rests_until = float("-inf")
        self._withdrawn: str | None = None
        self._latest: Mapping[str, datetime] = {}

    def step(self) -> list[str]:
        """Make what is due; returns the devices whose boards were made."""
        began, noted = monotonic(), withdrawn.latest()
        everything = noted != self._withdrawn or began - self._made_at >= QUIET_S
        if not everything and began < self._rests_until:
            return []
        latest = latest_results()
        due = [slug for slug in latest if everything or latest[slug] != self._latest.get(slug)]
        if due:
            make_ahead(due)
        if everything:
            self._made_at, self._withdrawn = began, noted
        self._latest, ended = latest, monotonic()
        self._rests_until = ended + max(LEAST_S, (ended - began) / SHARE)
        return due


def make_ahead(devices: Iterable[str]) -> None:
    """Make the first page's answers and the usual boards of these devices, and keep them."""
    tasks = board_tasks()
    with made_again():
        for device in devices:
            for by in By:
                board(Query(device=device, by=by, sort=default_sort(by, "")), tasks)
        recent.record(timezone.now())
        recent.solved()
