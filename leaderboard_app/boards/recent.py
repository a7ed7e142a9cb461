"""Who leads the boards of one task, for the first page."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import Case, F, When

from leaderboard_app.boards import filtering, selectors
from leaderboard_app.boards.best import entries_of
from leaderboard_app.boards.heads import heads
from leaderboard_app.boards.query import Query
from leaderboard_app.boards.ranking import Entry
from runs_app.core.work.result_state import SURE
from runs_app.models import Device, Evaluation

_SHOWN = 6
"""Leaders that are shown of each device."""


def leading() -> list[UUID]:
    """Keys of the evaluations that lead a board of one task, on all devices."""
    tasks, keys = selectors.board_tasks(), []
    for device in selectors.devices_with_results():
        query = Query(device=device.slug)
        keys += [head.leads for head in heads(query, filtering.problems_of(query, tasks))]
    return keys


def leaders(keys: Collection[UUID]) -> list[tuple[Device, list[Entry]]]:
    """By device: the leaders of those boards of one task on which they are furthest ahead.

    The device with the most leaders comes first; of equals, one of this site.
    They are those with the largest scores: first those of which everything is in and that beat
    their baseline, and of either kind first those that have a score.
    """
    rows = Evaluation.objects.filter(pk__in=keys, speedup_best__isnull=False)
    is_sure = Case(When(SURE, speedup_best__gt=1, then=0), default=1)
    ordered = rows.order_by(is_sure, F("score").desc(nulls_last=True), "-speedup_best", "pk")
    shown: dict[str, list[UUID]] = {}
    for key, slug in ordered.values_list("pk", "device_id"):
        shown.setdefault(slug, []).append(key)
    first = [key for found in shown.values() for key in found[:_SHOWN]]
    known = {each.evaluation_id: each for each in entries_of(rows.filter(pk__in=first))}
    devices = [each for each in selectors.devices_with_results() if each.slug in shown]
    devices.sort(key=lambda each: (-len(shown[each.slug]), each.imported_from != ""))
    return [
        (device, [known[str(key)] for key in shown[device.slug][:_SHOWN] if str(key) in known])
        for device in devices
    ]
