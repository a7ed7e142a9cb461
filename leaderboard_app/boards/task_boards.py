"""The boards of one task, as its page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import top
from leaderboard_app.boards.headline import Headline, leading
from leaderboard_app.boards.query import Query
from leaderboard_app.boards.ranking import Entry
from leaderboard_app.boards.tables import BRIEF
from runs_app.core.integrity.ranking import Ranked
from runs_app.models import Device
from runs_app.submitting.likeness import likenesses
from tasks_app.columns import Table
from tasks_app.models import TaskVersion

_ROWS = 5  # chosen: the page leads to the whole board


@dataclass(frozen=True, kw_only=True)
class TaskBoards:
    """The first rows on each device, the leader of the first one, and what sources are like."""

    tables: list[tuple[Device, list[Ranked[Entry]]]]
    leading: Headline | None
    likeness: Mapping[str, str]
    query: Query
    columns: Table = BRIEF


def task_boards(version: TaskVersion) -> TaskBoards:
    """The boards of a task by its current version; devices without a result are left out."""
    slug = version.task.slug
    boards = [
        (device, top(device.slug, task=slug, limit=_ROWS))
        for device in selectors.devices_with_results()
    ]
    tables = [each for each in boards if each[1]]
    shown = [ranked.row.submission_id for _, rows in tables for ranked in rows]
    return TaskBoards(
        tables=tables,
        leading=leading(tables[0][1]) if tables else None,
        likeness=likenesses(version, shown),
        query=Query(device="", task=slug),
    )
