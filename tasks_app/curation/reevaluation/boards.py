"""What having submissions evaluated again means for the places on each board."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from runs_app.integrity.eligibility import eligible_on
from runs_app.models import Evaluation
from tasks_app.curation.reevaluation.plan import FATE_WORDS, QUEUED, Fate, Plan, Planned
from tasks_app.curation.reevaluation.selectors import (
    Board,
    best_of_agents,
    board_of,
    with_names,
)

_SHOWN = 100  # places of a board


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place on the earlier board, and what becomes of it; `new` is the place there now."""

    place: int | None
    row: Evaluation
    fate: Planned | None
    new: int | None

    @property
    def tried(self) -> bool:
        """Whether it gets an evaluation."""
        return self.fate is not None and self.fate.fate in QUEUED

    @property
    def falls_out(self) -> bool:
        """Whether its author and agent have no place on the new board, and no chance of one."""
        gone = self.fate is None or self.fate.fate in (Fate.REFUSED, Fate.LATER)
        return gone and self.new is None


@dataclass(frozen=True, kw_only=True)
class BoardPlan:
    """What a plan means for one device and direction."""

    board: Board
    device: str
    places: list[Place]
    more: int  # places that the table leaves out
    queued: int
    off_board: int  # of the queued ones, those without a place of their own
    fates: list[tuple[str, int]]
    refusals: list[tuple[str, int]]
    falling: int
    new_places: int


def board_plans(plan: Plan) -> list[BoardPlan]:
    """A plan board by board, in order of device and direction."""
    slugs = [device.slug for device in plan.choice.devices]
    new = best_of_agents(with_names(eligible_on(plan.choice.target).filter(device__in=slugs)))
    found = {board_of(each.evaluation) for each in plan.planned} | set(plan.boards)
    return [_board_plan(plan, board, new.get(board, ())) for board in sorted(found)]


def _board_plan(plan: Plan, board: Board, new: Iterable[Evaluation]) -> BoardPlan:
    planned = [each for each in plan.planned if board_of(each.evaluation) == board]
    there = {_owner(row): place for place, row in enumerate(new, start=1)}
    places = _places(plan.boards.get(board, ()), planned, there)
    queued = sum(each.fate in QUEUED for each in planned)
    fates = Counter(each.fate for each in planned)
    reasons = Counter(each.reason for each in planned if each.reason)
    names = {device.slug: device.name for device in plan.choice.devices}
    return BoardPlan(
        board=board,
        device=names[board.device],
        places=places[:_SHOWN],
        more=max(len(places) - _SHOWN, 0),
        queued=queued,
        off_board=queued - sum(place.tried for place in places),
        fates=[(_words(plan, fate), fates[fate]) for fate in Fate if fates[fate]],
        refusals=sorted(reasons.items()),
        falling=sum(place.falls_out for place in places),
        new_places=len(there),
    )


def _places(
    rows: Iterable[Evaluation], planned: Iterable[Planned], there: dict[tuple[int, int], int]
) -> list[Place]:
    fates = {each.evaluation.pk: each for each in planned}
    return [
        Place(
            place=place if row.speedup_best else None,
            row=row,
            fate=fates.get(row.pk),
            new=there.get(_owner(row)),
        )
        for place, row in enumerate(rows, start=1)
    ]


def _owner(row: Evaluation) -> tuple[int, int]:
    return row.submission.author_id, row.submission.agent_id


def _words(plan: Plan, fate: Fate) -> str:
    if plan.choice.same and fate is Fate.AGAIN:
        return "to be measured again"
    return FATE_WORDS[fate]
