"""The order of a long board is kept, packed; a short one is made anew."""

from __future__ import annotations

import uuid

import pytest

from leaderboard_app.boards import board as board_module
from leaderboard_app.boards import places
from leaderboard_app.boards.board import board
from leaderboard_app.boards.groups import Over
from leaderboard_app.boards.places import Places, kept_places
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.selectors import board_tasks
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def test_places_come_back_as_they_were() -> None:
    rows = [(uuid.uuid4(), rank, rank == 2) for rank in (1, 2, 2, 70_000)]
    packed = Places.pack(rows)
    assert len(packed) == 4
    assert [(p.pk, p.rank, p.tied) for p in packed[1:3]] == rows[1:3]
    assert (packed[-1].pk, packed[-1].rank) == rows[-1][:2]
    assert packed[9:] == []
    with pytest.raises(IndexError):
        packed[4]


def test_a_long_order_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def find() -> Places:
        made.append(1)
        return Places.pack([(uuid.uuid4(), 1, False)] * 3)

    kept_places("short", find)
    kept_places("short", find)
    assert len(made) == 2
    monkeypatch.setattr(places, "LONG", 3)
    first, again, other = (
        kept_places("long", find),
        kept_places("long", find),
        kept_places("another", find),
    )
    assert first.packed == again.packed != other.packed
    assert len(made) == 4


def test_a_deleted_result_leaves_a_kept_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "LONG", 1)
    first, second = (
        make.make_finished_evaluation(mode="ranked", source=f"{make.SOURCE}// {n}") for n in (1, 2)
    )
    query, tasks = Query(by=By.SUBMISSION, device="cpu"), board_tasks()
    assert len(board(query, tasks).entries[:]) == 2
    first.submission.delete()
    (left,) = board(query, tasks).entries[:]
    assert left.row.evaluation_id == str(second.pk)


@pytest.mark.parametrize("by", [By.AGENT, By.MODEL, By.MATRIX])
def test_names_with_many_results_are_kept_and_others_made_anew(
    by: By, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown() -> tuple[object, ...]:
        found = board(Query(by=by, device="cpu", over=Over.OWN), tasks)
        return found.groups or found.matrix.columns

    kernels = (f"{make.SOURCE}// {number}" for number in range(3))
    fields = {"mode": "ranked", "language_model": "brain"}
    make.make_finished_evaluation(agent="one", source=next(kernels), **fields)
    tasks = board_tasks()
    before = shown()
    make.make_finished_evaluation(agent="two", source=next(kernels), **fields)
    assert (now := shown()) != before
    monkeypatch.setattr(board_module, "LONG", 2)
    assert shown() == now
    make.make_finished_evaluation(agent="three", source=next(kernels), **fields)
    assert shown() == now
