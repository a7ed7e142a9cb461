"""See to who leads boards: audit them, and tell features when it is another submission."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from runs_app.core.hooks import place_changed
from runs_app.core.integrity import audits
from runs_app.core.integrity.eligibility import Board, leader
from runs_app.models import Evaluation


def board_of(evaluation: Evaluation) -> Board:
    """The board on which the evaluation's submission stands, or may come to stand."""
    return evaluation.task_version, evaluation.direction, evaluation.device_id


@contextmanager
def watched(boards: Iterable[Board], *, now: datetime) -> Iterator[None]:
    """Have whoever leads one of these boards at the end audited, unless that was done.

    Send `place_changed` for each that another submission leads then.
    """
    before = {board: leader(*board) for board in boards}
    yield
    for board, was in before.items():
        after = audits.consider(board, now=now)
        pks = {each.submission_id for each in (was, after) if each is not None}
        if len(pks) == 2 or (was is None) != (after is None):
            place_changed.send(sender=Evaluation, before=was, after=after, now=now)
