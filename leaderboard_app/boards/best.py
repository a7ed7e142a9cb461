"""The best results of each owner and problem, as plain rows of the database."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, overload
from uuid import UUID

from django.db.models import F, QuerySet, Window
from django.db.models.functions import Coalesce, RowNumber

from leaderboard_app.boards.ranking import Author, Entry, Estimate, Problem, Ranked, Sort, rank
from runs_app.models import Evaluation, Submission
from tasks_app.people import shown_name_of
from tasks_app.selectors import task_writers

_CHUNK = 100
"""Entries that are loaded at once when all are asked for."""


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


_SAME = tuple(
    each.name
    for each in fields(Entry)
    if each.name in {column.name for column in Evaluation._meta.concrete_fields} - {"score"}
)
"""Fields of an entry that are named like a column of the database."""
_OTHERS = {
    "submitter": shown_name_of("submission__author"),
    "agent": F("submission__agent__name"),
    "agent_id": F("submission__agent_id"),
    "kind": F("submission__agent__kind"),
    "language_model": F("submission__language_model__name"),
    "task": F("task_version__task__slug"),
    "origin": F("submission__origin"),
}
_SPEEDUPS = {
    "best": ("speedup_best", "speedup_spread"),
    "eager": ("speedup_eager", "eager_spread"),
    "compiled": ("speedup_compiled", "compiled_spread"),
}
"""The columns of the speedup and of its spread, by baseline."""
_COLUMNS = (
    "pk", "submission_id", "direction", "latency_ns", "latency_spread", "score", "score_spread",
    *_SAME, *itertools.chain(*_SPEEDUPS.values()),
)  # fmt: skip
_ORDERS: dict[Sort, tuple[str, str | Coalesce | None]] = {
    Sort.LATENCY: ("latency_ns", "latency_spread"),
    Sort.SPEEDUP: ("speedup_best", "speedup_spread"),
    Sort.SCORE: ("merit", Coalesce("score_spread", "latency_spread")),
    Sort.P: ("p_score", None),
    Sort.FLOOR: ("floor_fraction", None),
}
"""Column of the value and of its spread; a value without one is exact.

Without a score, merit is the time, and less of it is better.
"""


class RankedEntries(Sequence[Ranked[Entry]]):
    """Ranked entries of which only those that are looked at are loaded, with their intervals."""

    def __init__(self, places: Sequence[Place] = ()) -> None:
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
    """The best of each owner and problem, ranked; ties by the spreads that rows hold.

    Of equals, the one that was entered first comes first.
    """
    value, width = _ORDERS[sort]
    entered = _best(rows, owner).order_by("submission__created_at", "pk")
    found = entered.values_list("pk", value, *([width] if width else []))
    return RankedEntries(_ranked(found, sort))


def _ranked(rows: Iterable[tuple[Any, ...]], sort: Sort) -> list[Place]:
    sign = -1 if sort is Sort.LATENCY else 1
    values = [
        _Value(pk, f"{place:012}", number, *(spreads or [None]))
        for place, (pk, number, *spreads) in enumerate(rows)
    ]
    ranked = rank(values, lambda each: _order(each, sign), lambda each: each.entered)
    return [Place(each.row.pk, each.rank, each.tied) for each in ranked]


def best_of(rows: QuerySet[Evaluation], owner: Sequence[str]) -> list[Entry]:
    """The best of each owner and problem."""
    return entries_of(_best(rows, owner))


def entries_of(rows: QuerySet[Evaluation]) -> list[Entry]:
    """All of these rows as boards show them."""
    return _entries(_loaded(rows))


def _order(place: _Value, sign: int) -> Estimate | None:
    """The value to be ordered by, larger first."""
    if place.value is None:
        return None
    known = Estimate.around(place.value, place.spread)
    low, high = sorted((sign * known.low, sign * known.high))
    return Estimate(sign * known.value, low, high)


def _best(rows: QuerySet[Evaluation], owner: Sequence[str]) -> QuerySet[Evaluation]:
    place = Window(
        RowNumber(),
        partition_by=[F(name) for name in (*owner, "task_version", "direction")],
        order_by=[F("merit").desc(), F("submission__created_at").asc(), F("pk").asc()],
    )
    return rows.order_by().annotate(place=place).filter(place=1)


def _filled(places: Sequence[Place]) -> list[Ranked[Entry]]:
    """The entries of these places; what was deleted since they were ranked is left out."""
    rows = Evaluation.objects.filter(pk__in=[place.pk for place in places]).order_by()
    known = {row["pk"]: row for row in _loaded(rows)}
    here = [place for place in places if place.pk in known]
    entries = _entries([known[place.pk] for place in here])
    return [
        Ranked(place.rank, place.tied, entry) for place, entry in zip(here, entries, strict=True)
    ]


def _loaded(rows: QuerySet[Evaluation]) -> list[dict[str, object]]:
    return list(rows.values(*_COLUMNS, **_OTHERS))


def _entries(rows: Sequence[dict[str, object]]) -> list[Entry]:
    writers = task_writers() if rows else ()
    return [_entry(row, wrote=(row["task"], row["submitter"]) in writers) for row in rows]


def _entry(row: dict[str, Any], *, wrote: bool) -> Entry:
    return Entry(
        evaluation_id=str(row["pk"]),
        submission_id=str(row["submission_id"]),
        author=Author(
            row["submitter"],
            row["agent"],
            row["language_model"] or "",
            row["kind"],
            row["agent_id"],
        ),
        problem=Problem(row["task"], row["direction"]),
        latency=Estimate.around(row["latency_ns"], row["latency_spread"]),
        speedups={
            name: Estimate.around(row[value], row[width])
            for name, (value, width) in _SPEEDUPS.items()
            if row[value]
        },
        score=Estimate.around(row["score"], row["score_spread"]) if row["score"] else None,
        imported=row["origin"] == Submission.Origin.IMPORTED,
        wrote_task=wrote,
        **{name: row[name] for name in _SAME},
    )
