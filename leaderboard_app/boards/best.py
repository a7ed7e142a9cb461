"""The fastest results of each owner and problem, as plain rows, and a page of them in full."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload
from uuid import UUID

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from leaderboard_app.boards.intervals import LATENCY, Factors, spread, spreads
from leaderboard_app.boards.ranking import Author, Entry, Estimate, Problem, Ranked, Sort, rank
from runs_app.models import Evaluation, Result
from tasks_app.people import shown_name_of
from tasks_app.selectors import task_writers

_CHUNK = 100
"""Entries that are loaded at once when all are asked for, with their results."""
_KEPT_INTERVALS = 65536


class _Place(NamedTuple):
    """What an order needs of an evaluation: a plain row of the database."""

    pk: UUID
    value: float | None
    spread: float | None


class _Row(NamedTuple):
    """An evaluation as boards show it, in the order of `_COLUMNS`."""

    pk: UUID
    submission: UUID
    submitter: str
    agent: str
    language_model: str | None
    task: str
    direction: str
    device: str
    finished_at: Any
    latency_ns: float
    latency_spread: float | None
    best: float | None
    best_spread: float | None
    eager: float | None
    compiled: float | None
    hidden_speedup: float | None
    floor_fraction: float | None
    score: float | None
    audited: str


_COLUMNS = (
    "pk", "submission_id", shown_name_of("submission__author"), "submission__agent__name",
    "submission__language_model__name", "task_version__task__slug", "direction", "device_id",
    "finished_at", "latency_ns", "latency_spread", "speedup_best", "speedup_spread",
    "speedup_eager", "speedup_compiled", "hidden_speedup", "floor_fraction", "score", "audited",
)  # fmt: skip
_ORDERS = {
    Sort.LATENCY: ("latency_ns", "latency_spread"),
    Sort.SPEEDUP: ("speedup_best", "speedup_spread"),
    Sort.SCORE: ("score", None),
    Sort.FLOOR: ("floor_fraction", None),
}
"""Column of the value and of its spread; a value without one is exact."""


class RankedEntries(Sequence[Ranked[Entry]]):
    """Ranked entries of which only those that are looked at are loaded, with their intervals."""

    def __init__(self, places: Sequence[Ranked[_Place]] = ()) -> None:
        """Of these places, in order."""
        self._places = places

    def __len__(self) -> int:
        """Rows of the whole board; asks nothing."""
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Ranked[Entry]: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ranked[Entry]]: ...
    def __getitem__(self, index: int | slice) -> Ranked[Entry] | list[Ranked[Entry]]:
        """One entry or a page of them."""
        if isinstance(index, slice):
            places = self._places[index]
            starts = range(0, len(places), _CHUNK)
            return [row for at in starts for row in _filled(places[at : at + _CHUNK])]
        return _filled([self._places[index]])[0]

    def __iter__(self) -> Iterator[Ranked[Entry]]:
        """All of them, loaded by the hundred."""
        for at in range(0, len(self), _CHUNK):
            yield from self[at : at + _CHUNK]


def ranked_entries(rows: QuerySet[Evaluation], owner: Sequence[str], sort: Sort) -> RankedEntries:
    """The fastest of each owner and problem, ranked; ties by the spreads that rows hold."""
    value, width = _ORDERS[sort]
    found = _fastest(rows, owner).values_list("pk", value, *([width] if width else []))
    sign = -1 if sort is Sort.LATENCY else 1
    places = [_Place(pk, number, *(spreads or [None])) for pk, number, *spreads in found]
    return RankedEntries(rank(places, lambda place: _order(place, sign), lambda p: str(p.pk)))


def best_of(rows: QuerySet[Evaluation], owner: Sequence[str]) -> list[Entry]:
    """The fastest of each owner and problem, with the intervals of their results.

    The rows' own spreads would not do: they are symmetric, and know the best baseline only.
    """
    found = [_Row(*columns) for columns in _fastest(rows, owner).values_list(*_COLUMNS)]
    return _entries(found)


def _order(place: _Place, sign: int) -> Estimate | None:
    """The value to be ordered by, larger first."""
    if place.value is None:
        return None
    known = spread(place.value, _factors(place.spread))
    return known if sign > 0 else Estimate(-known.value, -known.high, -known.low)


def _factors(width: float | None) -> Factors:
    """A relative half width, as factors down and up."""
    return (math.exp(-(width or 0.0)), math.exp(width or 0.0))


def _fastest(rows: QuerySet[Evaluation], owner: Sequence[str]) -> QuerySet[Evaluation]:
    place = Window(
        RowNumber(),
        partition_by=[F(name) for name in (*owner, "task_version", "direction")],
        order_by=[F("latency_ns").asc(), F("pk").asc()],
    )
    return rows.order_by().annotate(place=place).filter(place=1)


def _filled(places: Sequence[Ranked[_Place]]) -> list[Ranked[Entry]]:
    rows = Evaluation.objects.filter(pk__in=[ranked.row.pk for ranked in places]).order_by()
    known = {columns[0]: _Row(*columns) for columns in rows.values_list(*_COLUMNS)}
    entries = _entries([known[ranked.row.pk] for ranked in places])
    return [
        Ranked(ranked.rank, ranked.tied, entry)
        for ranked, entry in zip(places, entries, strict=True)
    ]


def _entries(rows: Sequence[_Row]) -> list[Entry]:
    factors = _intervals([row.pk for row in rows])
    writers = task_writers() if rows else ()
    return [
        _entry(row, factors.get(row.pk, {}), wrote=(row.task, row.submitter) in writers)
        for row in rows
    ]


_known_intervals: OrderedDict[UUID, dict[str, Factors]] = OrderedDict()


def _intervals(keys: Sequence[UUID]) -> dict[UUID, dict[str, Factors]]:
    """Intervals of evaluations; read once from each result that no baselines will join.

    Of those that are kept, the ones that were asked for longest ago give way.
    """
    found = {key: _known_intervals[key] for key in keys if key in _known_intervals}
    missing = [key for key in keys if key not in found]
    for start in range(0, len(missing), _CHUNK):
        results = Result.objects.filter(pk__in=missing[start : start + _CHUNK])
        for key, document in results.values_list("pk", "document"):
            found[key] = spreads(document)
            if not document.get("pending_baselines"):
                _known_intervals[key] = found[key]
    for key in found.keys() & _known_intervals.keys():
        _known_intervals.move_to_end(key)
    while len(_known_intervals) > _KEPT_INTERVALS:
        _known_intervals.popitem(last=False)
    return found


def _entry(row: _Row, factors: dict[str, Factors], *, wrote: bool) -> Entry:
    speedups = {"best": row.best, "eager": row.eager, "compiled": row.compiled}
    return Entry(
        evaluation_id=str(row.pk),
        submission_id=str(row.submission),
        author=Author(row.submitter, row.agent, row.language_model or ""),
        problem=Problem(row.task, row.direction),
        device=row.device,
        finished_at=row.finished_at,
        latency=spread(row.latency_ns, factors.get(LATENCY)),
        speedups={
            name: spread(value, factors.get(name)) for name, value in speedups.items() if value
        },
        hidden_speedup=row.hidden_speedup,
        floor_fraction=row.floor_fraction,
        score=row.score,
        audited=row.audited,
        wrote_task=wrote,
    )
