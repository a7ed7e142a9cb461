"""The order of a board: the best of each author and agent, with ties by interval.

Boards, and pages that say which place a result has on one, both rank by `ranked_places`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from django.db.models import Case, F, QuerySet, When, Window
from django.db.models.expressions import Combinable
from django.db.models.functions import RowNumber

from runs_app.core.integrity.eligibility import BOARD_ORDER, eligible_evaluations
from runs_app.core.work.noise import widened
from runs_app.models import Evaluation

OWNER = ("submission__author", "submission__agent")
"""Columns of those whose best result is a row of a board by submission."""


Order = tuple[str | Combinable, Combinable | None]
"""A value of evaluations and its spread; one without a spread is exact."""

BY_SCORE: Order = (
    "merit",
    Case(
        When(merit__gt=0, score_spread__isnull=False, then="score_spread"),
        default=widened("latency_spread"),
    ),
)
"""What a task's board is ordered by. Merit that isn't a score is the negated time."""


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """An estimate without noise, such as a count."""
        return cls(value, value, value)

    @classmethod
    def around(cls, value: float, width: float | None) -> Estimate:
        """With a relative half width, which holds of the logarithm; exact where there is none."""
        factor = math.exp(width or 0.0)
        return cls(value, value / factor, value * factor)

    def overlaps(self, other: Estimate) -> bool:
        """Whether the two intervals share a point, so that neither is shown to be better."""
        return self.low <= other.high and other.low <= self.high


T = TypeVar("T")


@dataclass(frozen=True)
class Ranked(Generic[T]):
    """A row with its rank; `tied` if another row has the same rank."""

    rank: int
    tied: bool
    row: T


class Place(NamedTuple):
    """An evaluation's place on a board."""

    pk: UUID
    rank: int
    tied: bool


class _Value(NamedTuple):
    """What an order needs of an evaluation: a plain row of the database."""

    pk: UUID
    entered: str  # its place in the order in which they were entered
    value: float | None
    spread: float | None


def ranked_places(
    rows: QuerySet[Evaluation], owner: Sequence[str], order: Order, *, less_is_better: bool = False
) -> list[Place]:
    """The best of each owner and problem, ranked; ties by the spreads that rows hold.

    Of equals, the one that was entered first comes first.
    """
    value, width = order
    entered = best_rows(rows, owner).order_by("submission__created_at", "pk")
    found = entered.values_list("pk", value, *([width] if width else []))
    return _ranked(found, -1 if less_is_better else 1)


def ranked_places_beside(evaluation: Evaluation) -> list[Place]:
    """The places of the board on which an evaluation stands, or may come to stand."""
    rows = eligible_evaluations().filter(
        task_version=evaluation.task_version_id,
        device=evaluation.device_id,
        direction=evaluation.direction,
    )
    return ranked_places(rows, OWNER, BY_SCORE)


def best_rows(rows: QuerySet[Evaluation], owner: Sequence[str]) -> QuerySet[Evaluation]:
    """The best evaluation of each owner and problem."""
    place = Window(
        RowNumber(),
        partition_by=[F(name) for name in (*owner, "task_version", "direction")],
        order_by=BOARD_ORDER,
    )
    return rows.order_by().annotate(place=place).filter(place=1)


def _ranked(rows: Iterable[tuple[Any, ...]], sign: int) -> list[Place]:
    values = [
        _Value(pk, f"{place:012}", number, *(spreads or [None]))
        for place, (pk, number, *spreads) in enumerate(rows)
    ]
    ranked = rank(values, lambda each: _order(each, sign), lambda each: each.entered)
    return [Place(each.row.pk, each.rank, each.tied) for each in ranked]


def _order(place: _Value, sign: int) -> Estimate | None:
    """The value to be ordered by, larger first."""
    if place.value is None:
        return None
    known = Estimate.around(place.value, place.spread)
    low, high = sorted((sign * known.low, sign * known.high))
    return Estimate(sign * known.value, low, high)


def rank(
    rows: Sequence[T],
    value: Callable[[T], Estimate | None],
    name: Callable[[T], str],
    second: Callable[[T], Estimate | None] = lambda row: None,
) -> list[Ranked[T]]:
    """Order rows, larger values first; a rank is one more than the number of rows before the tie.

    A row ties with the first row of a tie while their intervals overlap, because neither is shown
    to be better; where they do not, a new rank begins. Rows for which `value` is None come last,
    with rank 0. `second` orders rows of equal value, and parts them where its intervals do not
    overlap; then `name` does.
    """
    valued = [(row, value(row)) for row in rows]
    known = [(row, estimate, second(row)) for row, estimate in valued if estimate is not None]
    known.sort(key=lambda e: (-e[1].value, -(e[2].value if e[2] else 0.0), name(e[0])))
    places: list[int] = []
    for index, entry in enumerate(known):
        leader = places[-1] if places else 0
        ties = bool(leader) and _is_tie(entry, known[leader - 1])
        places.append(leader if ties else index + 1)
    shared = Counter(places)
    result = [
        Ranked(place, shared[place] > 1, row)
        for place, (row, _, _) in zip(places, known, strict=True)
    ]
    rest = sorted((row for row, estimate in valued if estimate is None), key=name)
    return result + [Ranked(0, tied=False, row=row) for row in rest]


def _is_tie(
    row: tuple[object, Estimate, Estimate | None], leader: tuple[object, Estimate, Estimate | None]
) -> bool:
    """Whether neither is shown to be better: by the value, or if that is equal by the second."""
    if row[1].value != leader[1].value:
        return row[1].overlaps(leader[1])
    return row[2] is None or leader[2] is None or row[2].overlaps(leader[2])
