"""Tell features when another submission leads a board."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from runs_app.core.hooks import place_changed
from runs_app.core.integrity.eligibility import leader
from runs_app.models import Evaluation
from tasks_app.models import TaskVersion

Board = tuple[TaskVersion, str, str]
"""A version of a task, a direction, and a device's slug."""


def board_of(evaluation: Evaluation) -> Board:
    """The board on which the evaluation's submission stands, or may come to stand."""
    return evaluation.task_version, evaluation.direction, evaluation.device_id


@contextmanager
def watched(boards: Iterable[Board], *, now: datetime) -> Iterator[None]:
    """Send `place_changed` for each of these boards that another submission leads at the end."""
    before = {board: leader(*board) for board in boards}
    yield
    for board, was in before.items():
        after = leader(*board)
        pks = {each.submission_id for each in (was, after) if each is not None}
        if len(pks) == 2 or (was is None) != (after is None):
            place_changed.send(sender=Evaluation, before=was, after=after, now=now)
