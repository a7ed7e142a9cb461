"""Small answers about whole boards, kept for the pages that everybody opens."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from leaderboard_app.boards import filtering, selectors
from leaderboard_app.boards.best import entries_of
from leaderboard_app.boards.heads import heads
from leaderboard_app.boards.kept import kept
from leaderboard_app.boards.query import Query
from leaderboard_app.boards.ranking import Entry
from leaderboard_app.boards.records import Record, record_of_the_day
from runs_app.models import Device, Evaluation

_SHOWN = 6
"""Leaders that are shown of each device."""


@dataclass(frozen=True, kw_only=True)
class _Lead:
    """What is said of those who lead the boards of one task."""

    leaders: list[tuple[Device, list[Entry]]]
    record: Record | None


def leaders() -> list[tuple[Device, list[Entry]]]:
    """By device: the leaders of those boards of one task on which they are furthest ahead."""
    return _lead(timezone.now()).leaders


def record(now: datetime) -> Record | None:
    """The record of the day."""
    return _lead(now).record


def solved() -> dict[str, selectors.Solved]:
    """By task: how many agents solved it, and the best speedup with its device."""
    return kept("solved", selectors.solved_tasks)


def _lead(now: datetime) -> _Lead:
    return kept("lead", lambda: _found_lead(now))


def _found_lead(now: datetime) -> _Lead:
    devices, tasks = selectors.devices_with_results(), selectors.board_tasks()
    keys: list[UUID] = []
    for device in devices:
        query = Query(device=device.slug)
        found = heads(query, filtering.problems_of(query, tasks))
        keys += [head.leads for head in found]
    return _Lead(leaders=_furthest_ahead(devices, keys), record=record_of_the_day(now, keys))


def _furthest_ahead(
    devices: Iterable[Device], keys: Collection[UUID]
) -> list[tuple[Device, list[Entry]]]:
    """Of each device those who lead with the largest speedups, though they lead by their time."""
    rows = Evaluation.objects.filter(pk__in=keys, speedup_best__isnull=False)
    shown: dict[str, list[UUID]] = {}
    for key, slug in rows.order_by("-speedup_best", "pk").values_list("pk", "device_id"):
        shown.setdefault(slug, []).append(key)
    first = [key for found in shown.values() for key in found[:_SHOWN]]
    known = {each.evaluation_id: each for each in entries_of(rows.filter(pk__in=first))}
    return [
        (device, [known[str(key)] for key in shown[device.slug][:_SHOWN] if str(key) in known])
        for device in devices
        if device.slug in shown
    ]
