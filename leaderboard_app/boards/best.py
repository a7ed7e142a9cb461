"""The fastest results of each owner and problem, as plain rows of the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload
from uuid import UUID

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from leaderboard_app.boards.places import Place, Places, kept_places
from leaderboard_app.boards.ranking import Author, Entry, Estimate, Problem, Ranked, Sort, rank
from runs_app.models import Evaluation
from tasks_app.people import shown_name_of
from tasks_app.selectors import task_writers

_CHUNK = 100
"""Entries that are loaded at once when all are asked for."""


class _Value(NamedTuple):
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
    agent_id: int
    kind: str
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
    eager_spread: float | None
    compiled: float | None
    compiled_spread: float | None
    hidden_speedup: float | None
    floor_fraction: float | None
    score: float | None
    audited: str


_COLUMNS = (
    "pk", "submission_id", shown_name_of("submission__author"), "submission__agent__name",
    "submission__agent_id", "submission__agent__kind", "submission__language_model__name",
    "task_version__task__slug", "direction", "device_id", "finished_at",
    "latency_ns", "latency_spread", "speedup_best", "speedup_spread",
    "speedup_eager", "eager_spread", "speedup_compiled", "compiled_spread",
    "hidden_speedup", "floor_fraction", "score", "audited",
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

    def __init__(self, places: Places | None = None) -> None:
        """Of these places, in order."""
        self._places = places or Places()

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
    return RankedEntries(kept_places(f"{sort} {found.query}", lambda: _ranked(found, sort)))


def _ranked(rows: Iterable[tuple[Any, ...]], sort: Sort) -> Places:
    sign = -1 if sort is Sort.LATENCY else 1
    values = [_Value(pk, number, *(spreads or [None])) for pk, number, *spreads in rows]
    ranked = rank(values, lambda each: _order(each, sign), lambda each: str(each.pk))
    return Places.pack([(each.row.pk, each.rank, each.tied) for each in ranked])


def best_of(rows: QuerySet[Evaluation], owner: Sequence[str]) -> list[Entry]:
    """The fastest of each owner and problem."""
    return entries_of(_fastest(rows, owner))


def entries_of(rows: QuerySet[Evaluation]) -> list[Entry]:
    """All of these rows as boards show them."""
    return _entries([_Row(*columns) for columns in rows.values_list(*_COLUMNS)])


def _order(place: _Value, sign: int) -> Estimate | None:
    """The value to be ordered by, larger first."""
    if place.value is None:
        return None
    known = Estimate.around(place.value, place.spread)
    return known if sign > 0 else Estimate(-known.value, -known.high, -known.low)


def _fastest(rows: QuerySet[Evaluation], owner: Sequence[str]) -> QuerySet[Evaluation]:
    place = Window(
        RowNumber(),
        partition_by=[F(name) for name in (*owner, "task_version", "direction")],
        order_by=[F("latency_ns").asc(), F("pk").asc()],
    )
    return rows.order_by().annotate(place=place).filter(place=1)


def _filled(places: Sequence[Place]) -> list[Ranked[Entry]]:
    """The entries of these places; what was deleted since they were ranked is left out."""
    rows = Evaluation.objects.filter(pk__in=[place.pk for place in places]).order_by()
    known = {columns[0]: _Row(*columns) for columns in rows.values_list(*_COLUMNS)}
    here = [place for place in places if place.pk in known]
    entries = _entries([known[place.pk] for place in here])
    return [
        Ranked(place.rank, place.tied, entry) for place, entry in zip(here, entries, strict=True)
    ]


def _entries(rows: Sequence[_Row]) -> list[Entry]:
    writers = task_writers() if rows else ()
    return [_entry(row, wrote=(row.task, row.submitter) in writers) for row in rows]


def _entry(row: _Row, *, wrote: bool) -> Entry:
    speedups = {
        "best": (row.best, row.best_spread),
        "eager": (row.eager, row.eager_spread),
        "compiled": (row.compiled, row.compiled_spread),
    }
    return Entry(
        evaluation_id=str(row.pk),
        submission_id=str(row.submission),
        author=Author(row.submitter, row.agent, row.language_model or "", row.kind, row.agent_id),
        problem=Problem(row.task, row.direction),
        device=row.device,
        finished_at=row.finished_at,
        latency=Estimate.around(row.latency_ns, row.latency_spread),
        speedups={
            name: Estimate.around(value, width)
            for name, (value, width) in speedups.items()
            if value
        },
        hidden_speedup=row.hidden_speedup,
        floor_fraction=row.floor_fraction,
        score=row.score,
        audited=row.audited,
        wrote_task=wrote,
    )
