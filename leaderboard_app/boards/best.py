"""The best results of each owner and problem, as plain rows of the database."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, overload

from django.db.models import Case, F, QuerySet, When
from django.db.models.expressions import Combinable

from leaderboard_app.boards.ranking import Author, Entry, Problem, Sort
from runs_app.core.integrity.ranking import (
    BY_SCORE,
    Estimate,
    Order,
    Place,
    Ranked,
    best_rows,
    ranked_places,
)
from runs_app.core.work.noise import widened
from runs_app.models import Evaluation, Submission
from tasks_app.people import shown_name_of
from tasks_app.selectors import task_writers

_CHUNK = 100
"""Entries that are loaded at once when all are asked for."""


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
    "noise", *_SAME, *itertools.chain(*_SPEEDUPS.values()),
)  # fmt: skip


def _against_all(column: str) -> Combinable:
    """A figure over the best baseline: unknown while baselines are missing, and so listed last."""
    return Case(When(awaits_baselines=False, then=column))


_ORDERS: dict[Sort, Order] = {
    Sort.LATENCY: ("latency_ns", widened("latency_spread")),
    Sort.SPEEDUP: (_against_all("speedup_best"), widened("speedup_spread")),
    Sort.SCORE: BY_SCORE,
    Sort.P: (_against_all("p_score"), None),
    Sort.FLOOR: ("floor_fraction", None),
}


class RankedEntries(Sequence[Ranked[Entry]]):
    """Ranked entries of which only those that are looked at are loaded, with their intervals."""

    def __init__(self, places: Sequence[Place] = ()) -> None:
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
    """The best of each owner and problem, ranked."""
    is_time = sort is Sort.LATENCY
    return RankedEntries(ranked_places(rows, owner, _ORDERS[sort], less_is_better=is_time))


def best_of(rows: QuerySet[Evaluation], owner: Sequence[str]) -> list[Entry]:
    """The best of each owner and problem."""
    return entries_of(best_rows(rows, owner))


def entries_of(rows: QuerySet[Evaluation]) -> list[Entry]:
    """All of these rows as boards show them."""
    return _entries(_loaded(rows))


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


def _spread(row: dict[str, Any], column: str) -> float:
    """Half an interval, as `Evaluation.spread` returns it."""
    return math.hypot(row[column] or 0.0, row["noise"])


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
        latency=Estimate.around(row["latency_ns"], _spread(row, "latency_spread")),
        speedups={
            name: Estimate.around(row[value], _spread(row, width))
            for name, (value, width) in _SPEEDUPS.items()
            if row[value]
        },
        score=Estimate.around(row["score"], row["score_spread"]) if row["score"] else None,
        imported=row["origin"] == Submission.Origin.IMPORTED,
        wrote_task=wrote,
        **{name: row[name] for name in _SAME},
    )
