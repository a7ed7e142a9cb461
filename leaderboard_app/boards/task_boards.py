"""The boards of one task, as its page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import top
from leaderboard_app.boards.headline import Headline, leading
from leaderboard_app.boards.query import Query, parted
from leaderboard_app.boards.ranking import Entry
from leaderboard_app.boards.tables import BRIEF
from runs_app.core.integrity.ranking import Ranked
from runs_app.models import Device
from runs_app.submitting.remarks import likenesses
from tasks_app.columns import Table
from tasks_app.models import TaskVersion

_ROWS = 5  # chosen: the page leads to the whole board


@dataclass(frozen=True, kw_only=True)
class TaskBoards:
    """The first rows on each device, the leader of the first one, and what sources are like.

    `query` names which of the task's `directions` they are of, if there are several.
    """

    tables: list[tuple[Device, str, list[Ranked[Entry]]]]  # with the whole board's query string
    directions: Sequence[tuple[str, str]]  # with their query strings on the task's page
    leading: Headline | None
    likeness: Mapping[str, str]
    query: Query
    columns: Table = BRIEF


def task_boards(version: TaskVersion, direction: str) -> TaskBoards:
    """The boards of a task by its current version; devices without a result are left out."""
    directions = parted([each.value for each in version.data.directions])
    chosen = direction if direction in directions else next(iter(directions), "")
    query = Query(device="", task=version.task.slug, direction=chosen)
    boards = [
        (device, here.address(), top(here, _ROWS))
        for device in selectors.devices_with_results()
        for here in [replace(query, device=device.slug)]
    ]
    tables = [each for each in boards if each[2]]
    shown = [ranked.row.submission_id for _, _, rows in tables for ranked in rows]
    return TaskBoards(
        tables=tables,
        directions=[(each, urlencode({"direction": each})) for each in directions],
        leading=leading(tables[0][2]) if tables else None,
        likeness=likenesses(version, shown),
        query=query,
    )
